/**
 * Times as texts, as they are in databases.
 *
 * Owns: reading one. Invariant: a time without a zone is in UTC, as SQLite means it; JavaScript would take it for local. Leaves out: how a
 * `Date` is stored, which is the engine's, or a library's.
 */

/** As SQLite's functions read it, and with the zones that libraries write: a date, a time, or both. */
const TIME = /^(\d{4}-\d{2}-\d{2})?(?:(?:^|[T ]+)(\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?) *(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i;

/** The time in the form of ISO 8601, which says all of it; undefined if it is none. */
export function isoOf(text: string): string | undefined {
  const [, date, time, zone] = TIME.exec(text) ?? [];
  if (date === undefined && time === undefined) {
    return undefined;
  }
  const iso = time === undefined ? date! : `${date ?? "1970-01-01"}T${time}${zoneOf(zone)}`;
  if (!isTime(Date.parse(iso))) {
    return undefined;
  }
  // As it was stored, if it says all.
  return date !== undefined && zone !== undefined && isTime(Date.parse(text)) ? text : iso;
}

function zoneOf(zone: string | undefined): string {
  return zone === undefined ? "Z" : zone.length === 3 ? `${zone}:00` : zone;
}

export function isTime(milliseconds: number): boolean {
  return !Number.isNaN(milliseconds);
}
