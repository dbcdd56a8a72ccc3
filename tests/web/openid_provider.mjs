// A real OpenID provider on loopback, whose people are who they say they are: `ada@example.org` is verified.
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [modules, secret, returnsTo] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "town", redirect_uris: [returnsTo],
      ...(secret ? { client_secret: secret } : { token_endpoint_auth_method: "none" }),
    }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    pkce: { required: () => true },
    findAccount: (_ctx, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: id, email_verified: !id.startsWith("unverified") }),
    }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
