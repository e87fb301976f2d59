// In place of the package `async-retry`.
export default (work) => work();
