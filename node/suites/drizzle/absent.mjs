// In place of what Drizzle's tests import for other drivers.
export default function () {}
