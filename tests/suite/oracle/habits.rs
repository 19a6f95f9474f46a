//! FUSE file systems with habits of their own. libfuse 2 drops a call that sets only one time: times arrive, and a second
//! run finds nothing to do. sshfs lists a directory once for each descriptor: what is extraneous is removed.

use crate::common::{have, have_root};
use crate::tools::place::Place;

#[test]
fn times_are_kept_through_libfuse_2() {
    if !have_root("a FUSE mount") || !have("bindfs", "times through libfuse 2") {
        return;
    }
    let place = Place::new();
    place.sh(
        "mkdir -p s/d real m; for i in 1 2 3; do echo $i > s/$i; touch -d 2001-0$i-01 s/$i; done
         echo x > s/d/x; ln -s x s/link; touch -hd 2003-03-03 s/d/x s/link; touch -d 2002-02-02 s/d s",
    );
    let run = place.try_sh(
        "export XDG_STATE_HOME=$PWD/state; trap 'umount m' EXIT; bindfs real m || exit 77
         for line in 'sync -a s/ m/t/' 'sync -aU s/ m/v/' 'cp -a s m/u' 'cp -r --preserve=timestamps s m/w'; do
             $H $line || exit 3
             to=${line##* }; to=${to%/}
             for e in 1 2 3 d/x d .; do
                 [ $(stat -c %Y s/$e) = $(stat -c %Y $to/$e) ] || { echo $line: $e; exit 4; }
             done
         done
         $H sync -ai s/ m/t/ || exit 5
         echo y >> s/1; touch -d 2001-05-05 s/1; $H sync -a s/ m/t/ && $H sync -ai s/ m/t/",
    );
    if run.code == 77 {
        return crate::common::skip("times through libfuse 2: bindfs cannot mount");
    }
    assert_eq!((run.ok().out(), run.err()), (String::new(), String::new()), "{run}");
}

#[test]
fn sshfs_without_a_cache_of_listings() {
    const SERVER: &str = "/usr/lib/openssh/sftp-server";
    if !have_root("a FUSE mount") || !have("sshfs", "deletion through sshfs") {
        return;
    }
    if !std::path::Path::new(SERVER).exists() {
        return crate::common::skip("deletion through sshfs: needs openssh-sftp-server");
    }
    let place = Place::new();
    place.sh(&format!(
        "printf '#!/bin/sh\\nexec {SERVER}\\n' > ssh; chmod +x ssh; mkdir -p s/d real/t/d/junk/deep m
         echo x > s/f; echo y > s/d/g; echo z > real/t/extra; echo z > real/t/d/junk/deep/q; touch real/t/d/one"
    ));
    let run = place.try_sh(
        "export XDG_STATE_HOME=$PWD/state
         sshfs -o dir_cache=no,ssh_command=$PWD/ssh x:$PWD/real m || exit 77; trap 'umount m' EXIT
         $H sync -a --delete s/ m/t/ && diff -r s real/t || exit 3
         echo z > real/t/d/two; $H sync -a --delete-after s/ m/t/ && diff -r s real/t || exit 4
         echo z > real/t/d/two; $H sync -a --delete-before s/ m/t/ && diff -r s real/t",
    );
    if run.code == 77 {
        return crate::common::skip("deletion through sshfs: it cannot mount");
    }
    assert_eq!((run.ok().out(), run.err()), (String::new(), String::new()), "{run}");
}
