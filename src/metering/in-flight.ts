/** How many requests of an isolate have not ended. */

/** Counts the metered requests of an isolate. It is lost with the isolate, as its requests are. */
export class InFlight {
  #requests = 0;

  /** Requests for which a provider is called, until their record is written. */
  get requests(): number {
    return this.#requests;
  }

  /** Counts a request. @returns ends it; called once */
  begin(): () => void {
    this.#requests++;
    return () => {
      this.#requests--;
    };
  }
}
