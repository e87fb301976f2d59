//! Metrics and spans of [Flatwater](flatwater) databases.
//!
//! - [`Instrumentation`]: a span and the duration metric of each call, for OpenTelemetry
//! - [`observe`]: metrics of a database's figures, for OpenTelemetry
//! - [`prometheus_text`]: the same figures in Prometheus' text format, for a handler of `/metrics`
//!
//! Names of spans and attributes are those of OpenTelemetry's conventions for databases
//! (<https://opentelemetry.io/docs/specs/semconv/db/>). No attribute has a bound value. Where spans and metrics go is what the program
//! configures.

mod figures;
mod instrumentation;
mod observed;
mod text;

pub use instrumentation::Instrumentation;
pub use observed::{Observed, observe, observe_with};
pub use text::prometheus_text;
