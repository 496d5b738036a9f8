// What the vendored scripts put onto the window, for the checker alone: it is not served.
interface Window {
  htmx?: { trigger(target: Element, event: string): void; process(target: Element): void };
  Idiomorph?: {
    defaults: {
      callbacks: {
        beforeAttributeUpdated: (name: string, node: Node, kind: string) => boolean | void;
        beforeNodeMorphed: (node: Node, other: Node) => boolean | void;
      };
    };
  };
}
