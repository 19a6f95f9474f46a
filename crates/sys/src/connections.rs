//! TCP connections of processes: /proc/PID/net/tcp and the links in /proc/PID/fd.

use std::collections::HashSet;

/// True if a process has an established TCP connection. False as well if that cannot be read.
pub fn is_connected(pid: u32) -> bool {
    let Ok(links) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let sockets: Vec<u64> = links
        .filter_map(|link| socket(std::fs::read_link(link.ok()?.path()).ok()?.to_str()?))
        .collect();
    if sockets.is_empty() {
        return false;
    }
    let connections = ["tcp", "tcp6"].map(|table| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}"));
        established(&text.unwrap_or_default())
    });
    sockets.iter().any(|socket| connections.iter().any(|all| all.contains(socket)))
}

/// Inode in `socket:[4711]`.
fn socket(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Inodes of sockets with state 01, ESTABLISHED, in a table (proc_pid_net(5)).
fn established(table: &str) -> HashSet<u64> {
    let lines = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(3);
        let state = fields.next()?;
        (state == "01").then(|| fields.nth(5)?.parse().ok())?
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_links() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17 1 0 100 0\n\
             1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 42 1 0 20 4\n\
             2: odd\n";
        assert_eq!(established(table), HashSet::from([42]));
        assert_eq!(socket("socket:[4711]"), Some(4711));
        assert_eq!((socket("pipe:[4711]"), socket("/dev/null")), (None, None));
    }

    #[test]
    fn a_connection_is_seen_while_it_is_there() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(is_connected(std::process::id()));
        drop(stream);
        assert!(!is_connected(u32::MAX));
    }
}
