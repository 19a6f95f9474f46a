//! Engines with several blocks in flight: `io_uring` and `libaio`, queues of the kernel, and threads that submit blocks of
//! other engines (`io_submit_mode=offload`), one for each block in flight, each with an engine of its own; the thread of the
//! job does not wait for blocks then.

use super::{Completion, Engine, REFUSED, Submission, Transfer};
use hakobu_sys::aio::Context;
use hakobu_sys::ring::Ring;
use std::io::{Error, Result};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

impl Engine for Ring<'_> {
    const WAITS: bool = false;

    #[inline(always)]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        Ring::buffer(self, slot).unwrap_or_default()
    }

    #[inline(always)]
    fn transfer(&mut self, slot: usize, block: Transfer) -> Submission {
        if Ring::transfer(self, slot, block) { Submission::Queued } else { REFUSED }
    }

    fn sync(&mut self, slot: usize, file: u32, data: bool) -> Submission {
        if Ring::sync(self, slot, file, data) { Submission::Queued } else { REFUSED }
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<u32> {
        self.submit()
    }

    #[inline(always)]
    fn wait(&mut self, least: u32, _: u32, timeout: Option<Duration>) -> Result<u32> {
        Ring::wait(self, least, timeout)
    }

    #[inline(always)]
    fn take(&mut self) -> Option<Completion> {
        Ring::take(self)
    }

    fn in_flight(&self) -> usize {
        Ring::in_flight(self)
    }
}

impl Engine for Context<'_> {
    const WAITS: bool = false;

    #[inline(always)]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        Context::buffer(self, slot).unwrap_or_default()
    }

    #[inline(always)]
    fn transfer(&mut self, slot: usize, block: Transfer) -> Submission {
        if Context::transfer(self, slot, block) { Submission::Queued } else { REFUSED }
    }

    /// The call waits: few file systems have another one for this interface.
    fn sync(&mut self, _: usize, file: u32, data: bool) -> Submission {
        Submission::Done(Context::sync(self, file, data))
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<u32> {
        self.submit()
    }

    #[inline(always)]
    fn wait(&mut self, least: u32, most: u32, timeout: Option<Duration>) -> Result<u32> {
        Context::wait(self, least, most, timeout)
    }

    #[inline(always)]
    fn take(&mut self) -> Option<Completion> {
        Context::take(self)
    }

    fn in_flight(&self) -> usize {
        Context::in_flight(self)
    }
}

/// Stack of a thread, of which it touches a small part.
const STACK_BYTES: usize = 128 << 10;

/// Operation for a thread.
#[derive(Clone, Copy, Debug)]
enum Order {
    Transfer(Transfer),
    Sync { file: u32, data: bool },
}

/// An engine with its result, on its way back.
type Back<E> = (usize, Box<E>, i64);

/// Engines of threads; an engine is here while its slot is idle, and with its thread otherwise.
pub(crate) struct Offload<E> {
    engines: Vec<Option<Box<E>>>,
    threads: Vec<Sender<(Box<E>, Order)>>,
    back: Receiver<Back<E>>,
    in_flight: usize,
    /// Handed over since the last commit: they went at once.
    begun: u32,
}

/// Starts a thread for each engine, and calls `work` with all of them as one; the threads end with it.
pub(crate) fn with_threads<E: Engine + Send, T>(
    engines: Vec<E>,
    work: impl FnOnce(Offload<E>) -> T,
) -> Result<T> {
    std::thread::scope(|scope| {
        let (tell, back) = mpsc::channel();
        let mut threads = Vec::with_capacity(engines.len());
        for slot in 0..engines.len() {
            let (order, orders) = mpsc::channel::<(Box<E>, Order)>();
            let tell = tell.clone();
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            builder.spawn_scoped(scope, move || {
                for (mut engine, order) in orders {
                    let result = carry_out(&mut *engine, order);
                    if tell.send((slot, engine, result)).is_err() {
                        return;
                    }
                }
            })?;
            threads.push(order);
        }
        let engines = engines.into_iter().map(|engine| Some(Box::new(engine))).collect();
        Ok(work(Offload { engines, threads, back, in_flight: 0, begun: 0 }))
    })
}

/// Does one thing, and waits for it.
fn carry_out<E: Engine>(engine: &mut E, order: Order) -> i64 {
    let queued = match order {
        Order::Transfer(block) => engine.transfer(0, block),
        Order::Sync { file, data } => engine.sync(0, file, data),
    };
    let mut landed = Vec::new();
    match queued {
        Submission::Done(result) => result,
        Submission::Queued => match engine.reap(1, 1, None, &mut landed) {
            Ok(_) => landed.first().map_or(-i64::from(hakobu_sys::errno::EIO), |(_, said)| *said),
            Err(error) => -i64::from(hakobu_sys::errno::of(&error)),
        },
    }
}

impl<E: Engine + Send> Offload<E> {
    fn hand_over(&mut self, slot: usize, order: Order) -> Submission {
        let engine = self.engines.get_mut(slot).and_then(Option::take);
        let (Some(engine), Some(thread)) = (engine, self.threads.get(slot)) else { return REFUSED };
        if thread.send((engine, order)).is_err() {
            return REFUSED;
        }
        self.in_flight += 1;
        self.begun += 1;
        Submission::Queued
    }
}

impl<E: Engine + Send> Engine for Offload<E> {
    const WAITS: bool = false;

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        let engine = self.engines.get_mut(slot).and_then(Option::as_mut);
        engine.map(|engine| engine.buffer(0)).unwrap_or_default()
    }

    fn transfer(&mut self, slot: usize, block: Transfer) -> Submission {
        self.hand_over(slot, Order::Transfer(block))
    }

    fn sync(&mut self, slot: usize, file: u32, data: bool) -> Submission {
        self.hand_over(slot, Order::Sync { file, data })
    }

    fn commit(&mut self) -> Result<u32> {
        Ok(std::mem::take(&mut self.begun))
    }

    fn reap(
        &mut self,
        least: u32,
        most: u32,
        timeout: Option<Duration>,
        landed: &mut Vec<Completion>,
    ) -> Result<u32> {
        let went = self.commit()?;
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let mut count = 0;
        while count < most && self.in_flight > 0 {
            let next = match until {
                _ if count >= least => self.back.try_recv().ok(),
                None => self.back.recv().ok(),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    match self.back.recv_timeout(left) {
                        Ok(back) => Some(back),
                        Err(RecvTimeoutError::Timeout) => None,
                        Err(RecvTimeoutError::Disconnected) => {
                            return Err(Error::other("a thread of the engine has ended"));
                        }
                    }
                }
            };
            let Some((slot, engine, result)) = next else { break };
            if let Some(place) = self.engines.get_mut(slot) {
                *place = Some(engine);
            }
            landed.push((slot, result));
            self.in_flight -= 1;
            count += 1;
        }
        Ok(went)
    }
}
