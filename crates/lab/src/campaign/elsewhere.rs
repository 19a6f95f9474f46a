//! A cell at another endpoint: the same commands, with one URL in place of the other.

use super::{Action, Planned};

impl Planned {
    /// Whether what is run names the endpoint, so that another one can take its place. Settings files
    /// are not looked into.
    pub fn names_endpoint(&self) -> bool {
        let Some(endpoint) = &self.endpoint else { return false };
        let mut texts = self.launch.argv.iter().chain(self.launch.env.values());
        texts.any(|text| text.contains(endpoint))
    }

    /// The same at another endpoint: what is run, and what happens before and after it.
    pub fn at(&self, endpoint: &str) -> Planned {
        let mut other = self.clone();
        let Some(here) = other.endpoint.replace(endpoint.to_owned()) else { return other };
        let exchange = |text: &mut String| *text = text.replace(&here, endpoint);
        other.launch.argv.iter_mut().for_each(exchange);
        other.launch.env.values_mut().for_each(exchange);
        other.conclude.iter_mut().for_each(exchange);
        for action in &mut other.prepare {
            if let Action::Shell(command) = action {
                exchange(command);
            }
        }
        exchange(&mut other.cell.command);
        other
    }
}
