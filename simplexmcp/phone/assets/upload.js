// A file on its way to the server.

import { Failure } from "./stream.js";

/** Upload a file; `{done, stop}`: a promise of the server's answer, and a function that ends it. */
export function upload(file, onProgress) {
  // fetch does not tell how far an upload is.
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    request.onload = () => answered(request, resolve, reject);
    request.onerror = () => reject(new Failure("The file did not reach the server."));
    request.onabort = () => reject(new Failure("The upload was stopped."));
  });
  request.open("POST", `/upload?name=${encodeURIComponent(file.name)}`);
  request.responseType = "json";
  request.send(file);
  return { done, stop: () => request.abort() };
}

function answered(request, resolve, reject) {
  if (request.status < 400 && request.response?.upload) resolve(request.response);
  else reject(new Failure(request.response?.error ?? "The server did not take the file."));
}
