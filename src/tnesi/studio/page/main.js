// The page of the labeling studio: assembles the parts and connects to the server.
import { takeToken } from "./api.js";
import { openField, startField } from "./field.js";
import { hideGallery, showGallery, startGallery } from "./gallery.js";
import { startHeader } from "./header.js";
import { startHelp } from "./help.js";
import { startKeys } from "./keys.js";
import { startMap } from "./map.js";
import { hurry } from "./outbox.js";
import { startOutlook } from "./outlook.js";
import { startQuestion } from "./question.js";
import { startRow } from "./row.js";
import { startStanding } from "./standing.js";
import { lineListeners, start } from "./state.js";
import { onTab, showTab, startTabs } from "./tabs.js";

takeToken();
startQuestion();
startHeader();
startHelp();
startOutlook();
const painter = startMap();
startField((field) => painter.pictureOf(field));
startRow(openField);
startGallery();
startTabs();
onTab((name, chosen) => (name === "gallery" ? showGallery(chosen) : hideGallery()));
startStanding((name) => {
  showTab("gallery", name);
  document.getElementById("tab-gallery").focus();
  document.querySelector(".explore").scrollIntoView({ block: "nearest" });
});
startKeys();
lineListeners.add((line) => line === "open" && hurry());
start();
