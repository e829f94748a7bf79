// A photo by the camera as an upload. A button of the class digits-camera is an upload of ipywidgets, which keeps its
// file input outside the document and clicks on it; here the input gets a photo in place of the dialogue for files.
// Without a camera, or without leave, the dialogue opens; a phone's offers its camera by the input's `capture`.
"use strict";
(() => {
  const choose = HTMLInputElement.prototype.click;
  let asked = false;

  document.addEventListener("click", event => { asked = !!event.target.closest?.(".digits-camera"); }, true);
  HTMLInputElement.prototype.click = function () {
    if (this.type !== "file" || !asked) return choose.call(this);
    asked = false;
    photograph(this);
  };

  async function photograph(input) {
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({video: true});
    } catch {
      input.setAttribute("capture", "environment");
      return choose.call(input);
    }
    const dialog = document.createElement("dialog"), video = document.createElement("video");
    dialog.setAttribute("aria-label", "Take a photo");
    video.setAttribute("aria-label", "What the camera sees");
    Object.assign(video, {autoplay: true, muted: true, playsInline: true, srcObject: stream});
    const [take, leave] = ["Take the photo", "Cancel"].map(words => {
      const button = document.createElement("button");
      button.textContent = words;
      return button;
    });
    dialog.append(video, take, leave);
    document.body.append(dialog);
    dialog.addEventListener("close", () => {
      stream.getTracks().forEach(track => track.stop());
      dialog.remove();
    });
    leave.addEventListener("click", () => dialog.close());
    take.addEventListener("click", async () => {
      if (!video.videoWidth) return; // it has not begun
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
      canvas.getContext("2d").drawImage(video, 0, 0);
      const photo = await new Promise(done => canvas.toBlob(done, "image/png"));
      const files = new DataTransfer();
      files.items.add(new File([photo], `photo ${new Date().toTimeString().slice(0, 8)}.png`, {type: "image/png"}));
      input.files = files.files;
      input.dispatchEvent(new Event("change"));
      dialog.close();
    });
    dialog.showModal();
  }
})();
