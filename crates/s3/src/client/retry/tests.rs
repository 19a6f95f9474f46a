//! Sending, recoveries and retries of a client against a scripted server.

use super::*;
use crate::script::{Act, Server, ServerSession, answer, block_on, refusal, text};
use crate::{Client, Error, Request, S3Session, Settings};
use hakobu_core::limit::Limiter;
use http::Method;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

fn put(key: &str, body: &str) -> Request {
    let request = Request::new("PutObject", Method::PUT, Some("bucket"));
    request.key(key.as_bytes()).body(body.to_owned())
}

fn get(key: &str) -> Request {
    Request::new("GetObject", Method::GET, Some("bucket")).key(key.as_bytes())
}

fn quick() -> Settings {
    Settings { read_timeout: Some(Duration::from_millis(200)), ..Settings::default() }
}

fn counts(client: &Client) -> (u64, u64, u64, u64) {
    let counts = &client.session().counts;
    let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    (
        read(&counts.requests),
        read(&counts.retries),
        read(&counts.throttled),
        read(&counts.connections),
    )
}

#[test]
fn a_request_says_what_it_should() {
    let server = Server::start(|_| answer("200 OK", "etag: \"e\"\r\n", ""));
    let client = Client::new(&server.session(Settings::default()));
    let response = block_on(client.send(&put("a b/../ü", "hello").query("x", "1&2"))).unwrap();
    assert_eq!(response.headers["etag"], "\"e\"");
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "PUT /bucket/a%20b/../%C3%BC?x=1%262 HTTP/1.1");
    assert_eq!(seen.body, b"hello");
    assert_eq!(seen.header("content-length"), Some("5"));
    assert_eq!(seen.header("host"), Some(&server.url[7..]));
    assert_eq!(
        seen.header("x-amz-content-sha256"),
        Some("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
    );
    assert!(seen.header("authorization").unwrap().contains("Credential=AK/"));
}

#[test]
fn an_empty_put_tells_its_length_and_an_anonymous_one_signs_nothing() {
    let server = Server::start(|_| answer("200 OK", "", ""));
    let settings = Settings { no_sign_request: true, request_payer: true, ..Settings::default() };
    let client = Client::new(&server.session(settings));
    block_on(client.send(&put("k", ""))).unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.header("content-length"), Some("0"));
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.header("x-amz-request-payer"), Some("requester"));
}

#[test]
fn one_connection_carries_all_requests_in_a_row() {
    let server = Server::start(|_| answer("200 OK", "", "body"));
    let client = Client::new(&server.session(Settings::default()));
    block_on(async {
        for n in 0..50 {
            let response = client.send(&put(&n.to_string(), "x")).await.unwrap();
            assert_eq!(&response.body[..], b"body");
        }
    });
    assert_eq!(counts(&client), (50, 0, 0, 1));
    assert!(server.seen().iter().all(|seen| seen.connection == 0));
}

#[test]
fn as_many_connections_stay_warm_as_tasks_use_them() {
    let server = Server::start(|_| answer("200 OK", "", ""));
    let client = Client::new(&server.session(Settings::default()));
    block_on(async {
        let task = |_| {
            let client = client.clone();
            tokio::task::spawn_local(async move {
                for _ in 0..20 {
                    client.send(&put("k", "x")).await.unwrap();
                }
            })
        };
        for task in Vec::from_iter((0..16).map(task)) {
            task.await.unwrap();
        }
    });
    let (requests, retries, _, connections) = counts(&client);
    assert_eq!((requests, retries), (320, 0));
    assert!(connections <= 16, "{connections}");
}

#[test]
fn connections_that_the_server_closed_while_idle_cost_nothing() {
    let server = Server::start(|seen| match seen.number % 2 {
        0 => Act::SayAndClose(text("200 OK", "", "")),
        _ => answer("200 OK", "", ""),
    });
    let client = Client::new(&server.session(Settings { attempts_max: Some(1), ..quick() }));
    block_on(async {
        for _ in 0..10 {
            client.send(&put("k", "x")).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let (requests, _, throttled, _) = counts(&client);
    assert_eq!((requests, throttled), (10, 0));
}

#[test]
fn failures_of_servers_and_connections_are_tried_again() {
    let server = Server::start(|seen| {
        match seen.number {
        0 => refusal("500 Internal Server Error", "", "InternalError"),
        1 => Act::Reset,
        2 => Act::SayAndClose(String::new()),
        3 => Act::SayAndClose("HTTP/1.1 200 OK\r\netag: \"e\"\r\nlast-modified: Fri, 24 May 2013 00:00:01 GMT\r\ncontent-length: 9\r\n\r\nhalf".to_owned()),
        _ => answer("200 OK", "", "whole"),
    }
    });
    let client = Client::new(&server.session(quick()));
    let response = block_on(client.send(&put("k", "x"))).unwrap();
    assert_eq!(&response.body[..], b"whole");
    let (requests, retries, throttled, _) = counts(&client);
    assert_eq!((requests, retries, throttled), (1, 4, 0));
}

#[test]
fn what_is_final_is_tried_once() {
    let server = Server::start(|_| refusal("403 Forbidden", "", "AccessDenied"));
    let client = Client::new(&server.session(Settings::default()));
    let error = block_on(client.send(&put("k", "x"))).unwrap_err();
    assert_eq!((error.kind, error.status, error.tries), (ErrorKind::AccessDenied, 403, 1));
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn tries_end_and_are_counted() {
    let server = Server::start(|_| refusal("500 Oops", "", "InternalError"));
    let client = Client::new(&server.session(Settings { attempts_max: Some(3), ..quick() }));
    let error = block_on(client.send(&put("k", "x"))).unwrap_err();
    assert_eq!((error.kind, error.tries), (ErrorKind::Server, 3));
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn what_must_not_happen_twice_is_not_sent_twice() {
    let lost = Server::start(|_| Act::Reset);
    let client = Client::new(&lost.session(quick()));
    let once = Request { repeatable: false, ..put("k", "x") };
    let error = block_on(client.send(&once)).unwrap_err();
    assert_eq!((error.kind, lost.seen().len()), (ErrorKind::Connection, 1));
    // A response that says "not done" may be retried.
    let refusing = Server::start(|seen| match seen.number {
        0 => refusal("503 Slow Down", "", "SlowDown"),
        _ => answer("200 OK", "", ""),
    });
    let client = Client::new(&refusing.session(quick()));
    block_on(client.send(&once)).unwrap();
    assert_eq!(refusing.seen().len(), 2);
}

#[test]
fn slow_down_is_obeyed_and_counted() {
    let server = Server::start(|seen| match seen.number {
        0 => refusal("503 Slow Down", "retry-after: 1\r\n", "SlowDown"),
        _ => answer("200 OK", "", ""),
    });
    let client = Client::new(&server.session(Settings::default()));
    let start = Instant::now();
    block_on(client.send(&put("k", "x"))).unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(counts(&client), (1, 1, 1, 1));
}

#[test]
fn silence_is_cut_and_redone() {
    let server = Server::start(|seen| {
        match seen.number {
        0 => Act::SayAndWait(String::new(), Duration::from_secs(30)),
        1 => Act::SayAndWait(
            "HTTP/1.1 200 OK\r\netag: \"e\"\r\nlast-modified: Fri, 24 May 2013 00:00:01 GMT\r\ncontent-length: 9\r\n\r\nhalf".to_owned(),
            Duration::from_secs(30),
        ),
        _ => answer("200 OK", "", ""),
    }
    });
    let client = Client::new(&server.session(quick()));
    let start = Instant::now();
    block_on(client.send(&put("k", "x"))).unwrap();
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(5), "{took:?}");
    assert_eq!(counts(&client).2, 2);
}

#[test]
fn nobody_listening_is_told_soon_and_clearly() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let settings =
        Settings { endpoint_url: Some(url.clone()), no_sign_request: true, ..Settings::default() };
    let client = Client::new(&S3Session::open_with(&settings, &|_| None).unwrap());
    let start = Instant::now();
    let error = block_on(client.send(&put("k", "x"))).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(3));
    assert_eq!((error.kind, error.tries), (ErrorKind::Connection, 5));
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot connect to {url}: no server is listening")),
        "{text}"
    );
}

#[test]
fn a_clock_that_is_wrong_is_corrected_for_all_requests() {
    let server = Server::start(|seen| {
        let stamp = seen.header("x-amz-date").unwrap();
        match stamp.starts_with("20400101T0000") {
            true => answer("200 OK", "", ""),
            false => refusal(
                "403 Forbidden",
                "date: Sun, 01 Jan 2040 00:00:00 GMT\r\n",
                "RequestTimeTooSkewed",
            ),
        }
    });
    let client = Client::new(&server.session(Settings::default()));
    block_on(async {
        client.send(&put("k", "x")).await.unwrap();
        client.send(&put("l", "x")).await.unwrap();
    });
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn the_region_that_the_server_names_is_remembered_by_bucket() {
    let server = Server::start(|seen| {
        match seen.header("authorization").unwrap().contains("/eu-west-9/s3/") {
            true => answer("200 OK", "", ""),
            false => refusal(
                "400 Bad Request",
                "x-amz-bucket-region: eu-west-9\r\n",
                "AuthorizationHeaderMalformed",
            ),
        }
    });
    let client = Client::new(&server.session(Settings::default()));
    block_on(async {
        client.send(&put("k", "x")).await.unwrap();
        client.send(&put("l", "x")).await.unwrap();
    });
    assert_eq!(server.seen().len(), 3);
    assert_eq!(client.session().route(Some("other")).region, "us-east-1");
}

#[test]
fn a_region_that_does_not_help_is_an_error() {
    let server = Server::start(|_| {
        refusal("301 Moved", "x-amz-bucket-region: eu-west-9\r\n", "PermanentRedirect")
    });
    let client = Client::new(&server.session(Settings::default()));
    let error = block_on(client.send(&put("k", "x"))).unwrap_err();
    assert_eq!((error.kind, server.seen().len()), (ErrorKind::Region, 2));
}

#[test]
fn a_stopped_run_waits_no_longer() {
    let server = Server::start(|_| refusal("503 Slow", "retry-after: 30\r\n", "SlowDown"));
    let client = Client::new(&server.session(Settings::default()));
    let stop = Arc::new(AtomicBool::new(false));
    client.session().set_control(Arc::clone(&stop));
    let start = Instant::now();
    let error = block_on(async {
        tokio::task::spawn_local(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            stop.store(true, Ordering::Relaxed);
        });
        client.send(&put("k", "x")).await.unwrap_err()
    });
    assert_eq!(error.kind, ErrorKind::Stopped);
    assert!(start.elapsed() < Duration::from_secs(2));
    // Cleanup requests are still sent, once.
    let error = block_on(client.send(&put("k", "x"))).unwrap_err();
    assert_eq!((error.kind, server.seen().len()), (ErrorKind::Stopped, 2));
}

#[test]
fn a_body_comes_in_pieces_and_its_connection_is_used_again() {
    let long = "x".repeat(3_000_000);
    let server = Server::start(move |_| answer("200 OK", "", &long));
    let client = Client::new(&server.session(Settings::default()));
    block_on(async {
        for _ in 0..3 {
            let mut download = client.download(&get("k")).await.unwrap();
            let mut bytes = 0;
            while let Some(piece) = download.chunk().await.unwrap() {
                bytes += piece.len();
            }
            assert_eq!(bytes, 3_000_000);
            assert!(download.chunk().await.unwrap().is_none());
        }
        drop(client.download(&get("k")).await.unwrap());
        client.send(&get("k")).await.unwrap();
    });
    // Dropping an unread body closed its connection.
    assert_eq!(counts(&client), (5, 0, 0, 2));
}

#[test]
fn a_body_that_ends_early_or_stands_still_is_an_error() {
    let server = Server::start(|seen| {
        let half = "HTTP/1.1 200 OK\r\netag: \"e\"\r\nlast-modified: Fri, 24 May 2013 00:00:01 GMT\r\ncontent-length: 9\r\n\r\nhalf".to_owned();
        match seen.number {
            0 => Act::SayAndClose(half),
            _ => Act::SayAndWait(half, Duration::from_secs(30)),
        }
    });
    let client = Client::new(&server.session(quick()));
    let read = async |client: &Client| {
        let mut download = client.download(&get("k")).await?;
        while download.chunk().await?.is_some() {}
        Ok::<_, Error>(())
    };
    block_on(async {
        let error = read(&client).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connection);
        assert!(error.message.contains("after 4 of 9 bytes"), "{}", error.message);
        assert!(client.may_retry(1, &error).await);
        assert!(!client.may_retry(5, &error).await);
        assert_eq!(read(&client).await.unwrap_err().kind, ErrorKind::TimedOut);
    });
}

#[test]
fn a_reader_that_takes_its_time_is_not_cut() {
    let long = "x".repeat(8_000_000);
    let server = Server::start(move |_| answer("200 OK", "", &long));
    let client = Client::new(&server.session(quick()));
    block_on(async {
        let mut download = client.download(&get("k")).await.unwrap();
        let mut bytes = download.chunk().await.unwrap().unwrap().len();
        tokio::time::sleep(Duration::from_millis(700)).await;
        while let Some(piece) = download.chunk().await.unwrap() {
            bytes += piece.len();
        }
        assert_eq!(bytes, 8_000_000);
    });
}

#[test]
fn the_rate_that_is_set_is_kept() {
    let server = Server::start(|_| answer("200 OK", "", ""));
    let client = Client::new(&server.session(Settings::default()));
    client.session().set_operations(&Arc::new(Limiter::new(50)));
    let start = Instant::now();
    block_on(async {
        for _ in 0..11 {
            client.send(&put("k", "x")).await.unwrap();
        }
    });
    // The first one is free, and 40 ms may be caught up.
    assert!(start.elapsed() >= Duration::from_millis(155));
}

/// Interim responses (RFC 9110, section 15.2) do not count as progress: a server may send any number of them.
#[test]
fn interim_answers_have_an_end() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    for (text, pause) in [(interim.repeat(1000), 0), (interim.to_owned(), 20)] {
        let pause = Duration::from_millis(pause);
        let server = Server::start(move |_| Act::SayForEver(text.clone(), pause));
        let client = Client::new(&server.session(Settings { attempts_max: Some(2), ..quick() }));
        let error = block_on(async {
            let request = put("k", "x");
            let sent = client.send(&request);
            tokio::time::timeout(Duration::from_secs(20), sent).await.expect("it ends").unwrap_err()
        });
        let kind = if pause.is_zero() { ErrorKind::Connection } else { ErrorKind::TimedOut };
        assert_eq!(error.kind, kind, "{error}");
    }
    // A few are skipped.
    let few = interim.repeat(100) + &text("200 OK", "", "");
    let server = Server::start(move |_| Act::Say(few.clone()));
    block_on(Client::new(&server.session(quick())).send(&put("k", "x"))).unwrap();
}

#[test]
fn waits_grow_within_their_ceiling() {
    let often = RetryAttempts::exactly(99);
    let wait = |class, tries, random| wait(class, tries, often, None, random).unwrap();
    assert_eq!(wait(RetryClass::Transient, 1, 1.0), Duration::from_millis(50));
    assert_eq!(wait(RetryClass::Transient, 3, 1.0), Duration::from_millis(200));
    assert_eq!(wait(RetryClass::Transient, 3, 0.5), Duration::from_millis(100));
    assert_eq!(wait(RetryClass::Throttled, 2, 1.0), Duration::from_millis(200));
    assert_eq!(wait(RetryClass::Transient, 60, 1.0), WAIT_MAX);
    assert_eq!(wait(RetryClass::TimedOut, 60, 0.0), Duration::ZERO);
}

#[test]
fn the_last_try_is_the_last() {
    let again = |class, tries, attempts| wait(class, tries, attempts, None, 0.0).is_some();
    let usual = RetryAttempts::default();
    assert!(again(RetryClass::Transient, 4, usual) && !again(RetryClass::Transient, 5, usual));
    assert!(again(RetryClass::Throttled, 9, usual) && !again(RetryClass::Throttled, 10, usual));
    assert!(!again(RetryClass::Final, 1, usual));
    // A configured number applies to throttling as well.
    assert!(!again(RetryClass::Throttled, 1, RetryAttempts::exactly(1)));
}

#[test]
fn a_server_that_names_a_time_is_heard_within_reason() {
    let wait = |s| {
        let retry_after = Some(Duration::from_secs(s));
        wait(RetryClass::Throttled, 1, RetryAttempts::default(), retry_after, 0.0).unwrap()
    };
    assert_eq!(wait(3), Duration::from_secs(3));
    assert_eq!(wait(100_000), RETRY_AFTER_MAX);
}

#[test]
fn a_dead_endpoint_spends_the_budget() {
    let take = |budget: &RetryBudget, class| budget.take(class, Duration::from_secs(60), 7);
    let budget = RetryBudget::new();
    let taken = std::iter::from_fn(|| take(&budget, RetryClass::Transient)).count();
    assert_eq!(taken, 100);
    let budget = RetryBudget::new();
    assert_eq!(std::iter::from_fn(|| take(&budget, RetryClass::TimedOut)).count(), 50);
    budget.refill(0);
    assert!(take(&budget, RetryClass::Transient).is_none());
    budget.refill(10);
    assert!(take(&budget, RetryClass::Transient).is_some());
}

#[test]
fn to_slow_down_costs_nothing_while_others_succeed() {
    let budget = RetryBudget::new();
    let take = |s, succeeded| budget.take(RetryClass::Throttled, Duration::from_secs(s), succeeded);
    assert!((0..10_000).all(|_| take(1, 0) == Some(0)));
    assert!((0..10_000).all(|_| take(30, 5) == Some(0)));
    // No success for longer than the limit: the server fails.
    let taken = std::iter::from_fn(|| take(41, 5)).count();
    assert_eq!(taken, 100);
    assert_eq!(take(41, 6), Some(0));
}

/// Number of `count` requests that fail because of the exhausted budget, if each attempt fails with
/// probability `rate`.
fn refused(rate: f64, count: u32) -> u32 {
    let (budget, mut random) = (RetryBudget::new(), fastrand::Rng::with_seed(7));
    let mut refused = 0;
    'requests: for _ in 0..count {
        let (mut tries, mut paid) = (1, 0);
        while random.f64() < rate {
            if wait(RetryClass::Transient, tries, RetryAttempts::default(), None, 0.0).is_none() {
                continue 'requests;
            }
            let Some(cost) = budget.take(RetryClass::Transient, Duration::ZERO, 0) else {
                refused += 1;
                continue 'requests;
            };
            (tries, paid) = (tries + 1, cost);
        }
        budget.refill(paid);
    }
    refused
}

#[test]
fn a_server_with_errors_does_not_spend_the_budget() {
    assert_eq!(refused(0.05, 200_000), 0);
    assert_eq!(refused(0.2, 200_000), 0);
    assert!(refused(0.9, 10_000) > 0);
}

#[test]
fn kinds_and_codes_have_their_classes() {
    assert_eq!(class(ErrorKind::Throttled, 503, "SlowDown"), RetryClass::Throttled);
    assert_eq!(class(ErrorKind::Server, 500, ""), RetryClass::Transient);
    assert_eq!(class(ErrorKind::Invalid, 400, "RequestTimeout"), RetryClass::Transient);
    assert_eq!(class(ErrorKind::AccessDenied, 403, "AccessDenied"), RetryClass::Final);
    assert_eq!(class(ErrorKind::Corrupt, 0, ""), RetryClass::Transient);
    assert_eq!(class(ErrorKind::Stopped, 0, ""), RetryClass::Final);
}
