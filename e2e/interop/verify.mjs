// Asks the libraries that receivers use whether they take a request.
//
// It reads {"cases": [{"library", "secret", "headers", "body_base64", "want", "now"}]} on stdin and writes
// {"results": [{"got", "reason", "as_wanted"}]} on stdout, a result a case, in order. library is standardwebhooks or svix;
// want and got are ok or refused, got is error when a library fails in any way but refusing. now, in Unix seconds, is the
// receiver's clock; without it, or when it is 0, that of the machine.

import { buffer } from "node:stream/consumers";

import * as standardwebhooks from "standardwebhooks";
import * as svix from "svix";

const libraries = { standardwebhooks, svix };
const clock = Date.now;

function verify({ library, secret, headers, body_base64, now }) {
  const { Webhook, WebhookVerificationError } = libraries[library] ?? {};
  if (!Webhook) {
    return { got: "error", reason: `there is no library ${library}` };
  }
  Date.now = now ? () => now * 1000 : clock;
  try {
    new Webhook(secret).verify(Buffer.from(body_base64 ?? "", "base64"), headers);
    return { got: "ok", reason: "" };
  } catch (err) {
    // Anything else, such as a body that is no JSON or a secret that cannot be read, is no judgement of the signature.
    return { got: err instanceof WebhookVerificationError ? "refused" : "error", reason: String(err.message ?? err) };
  } finally {
    Date.now = clock;
  }
}

const { cases } = JSON.parse(await buffer(process.stdin));
const results = cases.map((c) => {
  const result = verify(c);
  return { ...result, as_wanted: result.got === c.want };
});
process.stdout.write(JSON.stringify({ results }));
