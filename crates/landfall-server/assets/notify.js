// Notifications of the browser when something new needs a person. Asked for by a button, never by itself.
import { toast } from "./toasts.js";

let known = 0;

/** Shows the button where notifications can be had, and watches the count of what waits. */
export function offerNotifications() {
  known = waiting();
  offer();
  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element ? event.target.closest("#ask-notify") : null;
    if (!button) return;
    const leave = await Notification.requestPermission();
    if (leave === "granted") toast("good", "You will be told when something needs you, while a page of Landfall is open.");
    else toast("warn", "The browser does not allow notifications here.");
    offer();
  });
  document.addEventListener("htmx:afterSettle", () => {
    offer();
    const now = waiting();
    if (now > known && document.hidden) tell(now);
    known = now;
  });
}

function can() {
  return "Notification" in window && window.isSecureContext;
}

function offer() {
  const button = document.getElementById("ask-notify");
  if (button) button.hidden = !can() || Notification.permission !== "default";
}

function waiting() {
  return Number(document.getElementById("state")?.dataset.needs ?? 0);
}

/** @param {number} count */
function tell(count) {
  if (!can() || Notification.permission !== "granted") return;
  const project = document.querySelector(".brand")?.textContent?.trim() ?? "Landfall";
  const text = count === 1 ? "1 thing needs you" : `${count} things need you`;
  const note = new Notification(project, { body: text, tag: "landfall-needs-you", icon: "/assets/icon.svg" });
  note.onclick = () => {
    window.focus();
    location.href = "/inbox";
  };
}
