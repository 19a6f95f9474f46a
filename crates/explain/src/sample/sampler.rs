//! The sampler: files to read, and how they become a sample.

use super::links::Known;
use super::process::Own;
use super::tree::Tree;
use super::{Memory, PressureTimes, Process, Sample, limits, parse};
use hakobu_sys::counters::{self, Counters, Machine};

/// Process counters to read in addition to the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// None.
    Machine,
    /// This process and each of its threads.
    ThisProcess,
    /// A process and its descendants.
    Tree(u32),
    /// Children of this process and their descendants, living and ended, since this process began. After
    /// [`hakobu_sys::task::adopt_orphans`] this includes orphans.
    Children,
}

/// Reads samples; files stay open in between.
#[derive(Debug)]
pub struct Sampler {
    began_ns: u64,
    buffer: Vec<u8>,
    stat: Option<Counters>,
    memory: Option<Counters>,
    paging: Option<Counters>,
    disks: Option<Counters>,
    links: Option<Counters>,
    protocols: Option<Counters>,
    pressure: [Option<Counters>; 3],
    quota: Option<Counters>,
    known: Known,
    watching: Watching,
}

#[derive(Debug)]
enum Watching {
    Nobody,
    Own(Box<Own>),
    Tree(Box<Tree>),
}

impl Sampler {
    /// Opens the available files. Never fails: missing files are missing in samples.
    pub fn new(of: Watched) -> Sampler {
        Sampler {
            began_ns: counters::now_ns(),
            buffer: Vec::new(),
            stat: Counters::machine(Machine::Stat),
            memory: Counters::machine(Machine::Memory),
            paging: Counters::machine(Machine::Paging),
            disks: Counters::machine(Machine::Disks),
            links: Counters::machine(Machine::Links),
            protocols: Counters::machine(Machine::Protocols),
            pressure: [Machine::PressureCpu, Machine::PressureIo, Machine::PressureMemory]
                .map(Counters::machine),
            quota: limits::Limits::read().quota_counters(),
            known: Known::default(),
            watching: match of {
                Watched::Machine => Watching::Nobody,
                Watched::ThisProcess => Watching::Own(Box::new(Own::new())),
                Watched::Tree(root) => Watching::Tree(Box::new(Tree::new(Some(root)))),
                Watched::Children => Watching::Tree(Box::new(Tree::new(None))),
            },
        }
    }

    /// Takes a sample. To include all usage of a process, sample after it has ended and before it is waited
    /// for.
    pub fn read(&mut self) -> Sample {
        let now_ns = counters::now_ns();
        let mut sample =
            Sample { at_ns: now_ns.saturating_sub(self.began_ns), ..Sample::default() };
        self.known.age(sample.at_ns);
        // Process counters first, closest to the recorded time.
        sample.process = match &mut self.watching {
            Watching::Nobody => Process::default(),
            Watching::Own(own) => own.read(&mut self.buffer),
            Watching::Tree(tree) => tree.read(&mut self.buffer),
        };
        self.machine(&mut sample);
        sample
    }

    fn machine(&mut self, sample: &mut Sample) {
        let buffer = &mut self.buffer;
        if let Some(text) = read(&self.stat, buffer) {
            parse::stat(text, counters::ticks_per_s(), sample);
        }
        sample.memory = read(&self.memory, buffer).map_or_else(Memory::default, parse::memory);
        if let Some(text) = read(&self.paging, buffer) {
            parse::paging(text, counters::page_bytes(), sample);
        }
        if let Some(text) = read(&self.disks, buffer) {
            sample.disks = self.known.disks(text);
        }
        if let Some(text) = read(&self.links, buffer) {
            sample.links = self.known.links(text);
        }
        let quota = self.quota.as_ref().and_then(|file| file.read_short(buffer));
        sample.quota_periods = quota.and_then(limits::quota_periods);
        sample.tcp = read(&self.protocols, buffer).and_then(parse::tcp);
        let [cpu, io, memory] = &self.pressure;
        let mut pressure = |file: &Option<Counters>| {
            let text = file.as_ref().and_then(|file| file.read_short(buffer));
            text.map_or((None, None), parse::pressure)
        };
        let (io_some_us, io_full_us) = pressure(io);
        sample.pressure = PressureTimes {
            cpu_some_us: pressure(cpu).0,
            io_some_us,
            io_full_us,
            memory_some_us: pressure(memory).0,
        };
    }
}

fn read<'a>(file: &Option<Counters>, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    file.as_ref()?.read(buffer)
}
