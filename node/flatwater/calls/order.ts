/**
 * Steps that are awaited, several of them at once.
 *
 * Owns: their order. Invariants: a step begins when those before it are over, and at once if there are none. Leaves out: what a step is.
 */

export class InOrder {
  private last: Promise<unknown> | undefined;

  /** False while a step is under way. */
  get isFree(): boolean {
    return this.last === undefined;
  }

  add<T>(step: () => Promise<T>): Promise<T> {
    const result = this.last === undefined ? step() : this.last.then(step, step);
    this.last = result;
    const ended = () => {
      if (this.last === result) {
        this.last = undefined;
      }
    };
    result.then(ended, ended);
    return result;
  }
}
