// What both libraries call.
export const twice = (value) => value * 2;
export const shout = (text) => text.toUpperCase() + "!";
export const added = { start: 0, step: (sum, value) => sum + value, inverse: (sum, value) => sum - value };

export default (db) => {
  db.function("twice", { deterministic: true }, twice);
  db.function("shout", { deterministic: true }, shout);
  db.aggregate("added", added);
};
