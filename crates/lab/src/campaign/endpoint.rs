//! Runs a cell at another endpoint: the same commands with another URL.

use super::{Action, Planned};

impl Planned {
    /// True if commands contain the endpoint, so that it can be replaced. Settings files are not searched.
    pub fn names_endpoint(&self) -> bool {
        let Some(endpoint) = &self.endpoint else { return false };
        let mut texts = self.launch.argv.iter().chain(self.launch.env.values());
        texts.any(|text| text.contains(endpoint))
    }

    /// A copy of the cell with the endpoint replaced in its command and in the commands before and after it.
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
