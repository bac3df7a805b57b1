// Who is let in under which name: with and without a key, behind proxies, and health checks.
#include <gmock/gmock.h>

#include "message_of.h"
#include "test_server.h"

namespace braid::serve::access_test {

using testing::HasSubstr;
using testing::Not;

const std::string kBearer = "authorization: Bearer secret\r\n";

TEST(Access, TakesAKeyFromTheFirstLineOfAText) {
  const std::string key = "a key of ASCII ~!\"";
  for (const std::string& text :
       {key, key + "\nnotes", key + "\r\n", " " + key + "\t\n", "\xef\xbb\xbf" + key + "\r\n"})
    EXPECT_EQ(key_in_text(text), key) << text;
  const auto refusal = [](const std::string& text) {
    return message_of([&] { key_in_text(text); });
  };
  EXPECT_THAT(refusal(""), HasSubstr("an API key should have at least 16 characters, it has 0"));
  EXPECT_THAT(refusal("\xef\xbb\xbf" + std::string(15, 'k')), HasSubstr("it has 15"));
  EXPECT_THAT(refusal("a key with a tab\tin it"), HasSubstr("no control characters"));
  for (const auto* const odd : {"s\u00e9cretsecretsecret",
                                "s\xe9"
                                "cretsecretsecret"})
    EXPECT_THAT(refusal(odd), HasSubstr("ASCII characters alone")) << odd;
}

// A key that no head has room for would start a server for nobody.
TEST(Access, SaysWhichKeyIsUnusable) {
  EXPECT_EQ(key_in_text(std::string(4096, 'k')).size(), 4096u);
  EXPECT_THAT(message_of([] { key_in_text(std::string(4097, 'k')); }),
              HasSubstr("at most 4096 characters"));
  for (const auto& text : std::vector<std::string>{
           "", std::string(20'000, 'k'), "a key with a tab\tin it", "s\u00e9cretsecretsecret"})
    EXPECT_THAT(message_of([&] { key_in_text(text, "the API key in key.txt"); }),
                testing::StartsWith("the API key in key.txt should have "));
}

TEST(Access, IsGivenWhereverTheKeyBegins) {
  FakeEngine engine;
  const Server server(engine, {.key = "secret"});
  const auto status = [&](const std::string& value) {
    return status_of(server.ask("GET /v1/models", "authorization: " + value + "\r\n"));
  };
  for (const std::string value :
       {"Bearer secret", "Bearer  secret", "bearer    secret", "Basic  dXNlcjpzZWNyZXQ="})
    EXPECT_EQ(status(value), 200) << value << ": RFC 9110, section 11.4";
  for (const std::string value : {"Bearersecret", "Bearer", "Bearer ", "secret", "Bearer  sec ret"})
    EXPECT_EQ(status(value), 401) << value;
}

// Containers, NAT and tunnels: who has the key needs no rebinding.
TEST(Access, WithAKeyIsGivenUnderEveryName) {
  FakeEngine engine;
  const Server server(engine, {.key = "secret"});
  for (const std::string host : {"host.docker.internal:8188", "braid:8188", "192.168.1.5:8188",
                                 "x.trycloudflare.com", "0.0.0.0:8188"}) {
    EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: " + host + "\r\n" + kBearer)), 200);
    EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: " + host + "\r\n")), 401) << host;
    const auto origin = "origin: https://evil.example\r\n";
    EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: " + host + "\r\n" + origin + kBearer)),
              403);
  }
  EXPECT_EQ(
      status_of(RawClient(server.port())
                    .asked("GET /v1/models HTTP/1.1\r\n" + kBearer + "connection: close\r\n\r\n")),
      400)
      << "RFC 9112, section 3.2";
}

// They would lead elsewhere in the addresses of answers.
TEST(Access, IsNotGivenUnderNamesThatAreNone) {
  FakeEngine engine;
  const Server open(engine), closed(engine, {.key = "secret"});
  const std::string odd[] = {"localhost:1/evil?x=", "a/b c?d", "user@localhost", "localhost,evil"};
  for (const auto& host : odd) {
    const auto answer = open.ask("GET /v1/models", "host: " + host + "\r\n");
    EXPECT_EQ(status_of(answer), 400) << host;
    EXPECT_THAT(answer, HasSubstr("the Host header should be a name")) << host;
    EXPECT_EQ(status_of(closed.ask("GET /v1/models", "host: " + host + "\r\n" + kBearer)), 400);
    EXPECT_EQ(status_of(open.ask("GET /livez", "host: " + host + "\r\n")), 200) << host;
  }
}

TEST(Access, WithoutAKeyIsGivenUnderAllowedNames) {
  FakeEngine engine;
  const Server server(engine, {.hosts = {".example.org", "*.other.net"}});
  const auto status = [&](const std::string& host) {
    return status_of(server.ask("GET /v1/models", "host: " + host + "\r\n"));
  };
  for (const auto* const host : {"0.0.0.0:8188", "[::]:8188", "localhost.", "a.example.org:80",
                                 "EXAMPLE.org", "a.other.net"})
    EXPECT_EQ(status(host), 200) << host;
  for (const auto* const host : {"evilexample.org", "other.net", "host.docker.internal"})
    EXPECT_EQ(status(host), 403) << host;
}

// HAProxy's, Kubernetes' and load balancers' checks.
TEST(HealthChecks, AreAnsweredUnderAnyNameAndNone) {
  FakeEngine engine;
  const Server server(engine);
  for (const std::string path : {"/livez", "/readyz", "/health"}) {
    for (const std::string host : {"10.96.4.7:80", "node-3:30188", "evil.example"})
      EXPECT_EQ(status_of(server.ask("GET " + path, "host: " + host + "\r\n")), 200)
          << path << host;
    for (const std::string version : {"1.0", "1.1"})
      for (const std::string method : {"GET", "HEAD"}) {
        RawClient client(server.port());
        EXPECT_EQ(status_of(client.asked(method + " " + path + " HTTP/" + version +
                                         "\r\nconnection: close\r\n\r\n")),
                  200)
            << method << path << version;
      }
  }
  EXPECT_EQ(status_of(RawClient(server.port()).asked("OPTIONS / HTTP/1.0\r\n\r\n")), 204);
  EXPECT_EQ(status_of(server.ask("OPTIONS /", "host: evil.example\r\n")), 204);
  EXPECT_EQ(status_of(RawClient(server.port()).asked("GET /v1/models HTTP/1.0\r\n\r\n")), 200)
      << "no browser asks like this";
}

TEST(Access, KnowsItselfOnASocketForBothKindsOfAddresses) {
  for (const auto* const address : {"::", "[::]"}) {
    FakeEngine engine;
    const Server server(engine, {}, {.address = address});
    const auto status = [&](const std::string& host) {
      RawClient client(server.port(), "127.0.0.2");
      return status_of(client.asked("GET /v1/models HTTP/1.0\r\nhost: " + host + "\r\n\r\n"));
    };
    EXPECT_EQ(status("127.0.0.2:8188"), 200) << address;
    EXPECT_EQ(status("127.0.0.3:8188"), 403) << address;
  }
}

TEST(Access, IsGivenToNamedOriginsOfEveryKind) {
  FakeEngine engine;
  const Server server(engine, {.origins = {"null", "file://", "https://friend.example"}});
  const auto from = [&](const std::string& origin, const std::string& host = "localhost") {
    return server.ask("GET /v1/models", "host: " + host + "\r\norigin: " + origin + "\r\n");
  };
  EXPECT_THAT(from("null"), HasSubstr("access-control-allow-origin: null\r\n"));
  EXPECT_THAT(from("file://"), HasSubstr("access-control-allow-origin: file://\r\n"));
  EXPECT_THAT(from("https://friend.example:443"),
              HasSubstr("access-control-allow-origin: https://friend.example:443\r\n"));
  EXPECT_EQ(status_of(from("https://friend.example:8443")), 403);
  for (const auto& [origin, host] : std::vector<std::pair<std::string, std::string>>{
           {"http://localhost", "localhost:80"},
           {"http://localhost:80", "localhost"},
           {"https://localhost", "localhost:443"},
           {"http://localhost:8188", "localhost:8188"}})
    EXPECT_EQ(status_of(from(origin, host)), 200) << "the server's own page: " << origin << host;
  EXPECT_EQ(status_of(from("http://localhost:1", "localhost:2")), 403);
}

// A proxy that keeps its own name in Host, as Apache does.
TEST(Access, IsGivenToPagesThatAProxyNames) {
  FakeEngine engine;
  const Server server(engine, {.hosts = {"pictures.example"}});
  const auto status = [&](const std::string& forwarded, const std::string& origin,
                          const std::string& host = "127.0.0.1:8188") {
    return status_of(server.ask(
        "GET /v1/models",
        "host: " + host + "\r\nx-forwarded-host: " + forwarded + "\r\norigin: " + origin + "\r\n"));
  };
  EXPECT_EQ(status("pictures.example", "https://pictures.example"), 200);
  EXPECT_EQ(status("pictures.example, 10.0.0.1", "https://pictures.example"), 200);
  EXPECT_EQ(status("evil.example", "http://evil.example"), 403) << "a rebound name";
  EXPECT_EQ(status("localhost", "http://localhost", "evil.example"), 403)
      << "it cannot rename itself";
}

// An <img> sends no key. OpenAI's addresses are signed, too.
TEST(Access, ToAMadePictureIsItsAddress) {
  FakeEngine engine;
  const Server server(engine, {.key = "secret", .base_path = "/pictures"});
  const auto made =
      json_of(server.ask("POST /v1/images/generations", "host: localhost\r\n" + kBearer,
                         R"({"prompt": "a", "size": "16x16", "response_format": "url"})"));
  const std::string url = made["data"][0]["url"], site = "http://localhost";
  ASSERT_TRUE(url.starts_with(site)) << url;
  const auto path = url.substr(site.size());
  const auto picture = server.ask("GET " + path);
  EXPECT_EQ(status_of(picture), 200) << picture.substr(0, 500);
  EXPECT_THAT(picture, HasSubstr("Content-Type: image/png"));
  EXPECT_EQ(status_of(server.ask("HEAD " + path)), 200);
  EXPECT_EQ(status_of(server.ask("GET " + path, "authorization: Bearer another\r\n")), 200);
}

TEST(Access, WithoutAKeyTellsNobodyWhichJobsThereAre) {
  FakeEngine engine;
  const Server server(engine, {.key = "secret"});
  const std::string id =
      json_of(server.ask("POST /v1/jobs", kBearer, R"({"prompt": "a", "size": "16x16"})"))["id"];
  server.ask("GET /v1/jobs/" + id + "/events", kBearer);
  const auto path = "/v1/jobs/" + id, unknown = "/v1/jobs/" + std::string(32, '0');
  ASSERT_EQ(status_of(server.ask("GET " + path + "/pictures/0")), 200);
  const auto told = [&](const std::string& line) {
    const auto answer = server.ask(line);
    EXPECT_EQ(status_of(answer), 401) << line;
    return answer.substr(answer.find("\r\n\r\n"));
  };
  const auto wanted = told("GET " + unknown + "/pictures/0");
  EXPECT_THAT(wanted, HasSubstr("invalid_api_key"));
  for (const auto& line :
       std::vector<std::string>{"GET " + path, "DELETE " + path, "GET " + path + "/events",
                                "GET /v1/jobs", "GET " + path + "/pictures/1",
                                "GET " + path + "/pictures/x", "GET " + path + "/pictures/",
                                "POST " + path + "/pictures/0", "DELETE " + path + "/pictures/0",
                                "GET " + unknown + "/pictures/x", "GET " + path + "/pictures/0/x"})
    EXPECT_EQ(told(line), wanted) << line;
}

// RFC 7617. Many clients send a name and a password only when they are asked, as that web UI asks;
// a browser would then ask its user beside the page's own dialog.
TEST(Access, AsksClientsOfTheWebUiForAPassword) {
  FakeEngine engine;
  const Server server(engine, {.key = "secret"});
  const std::string basic = "www-authenticate: Basic realm=\"braid\"\r\n";
  const std::string bearer = "www-authenticate: Bearer\r\n", info = "POST /sdapi/v1/png-info";
  const std::string from_page = "origin: http://localhost\r\n";
  EXPECT_THAT(server.ask("GET /sdapi/v1/options"), HasSubstr(basic));
  EXPECT_THAT(server.ask(info, "", "{}"), HasSubstr(basic));
  EXPECT_THAT(server.ask("GET /sdapi/v1/nothing"), HasSubstr(basic));
  EXPECT_THAT(server.ask(info, from_page, "{}"), HasSubstr(bearer));
  EXPECT_THAT(server.ask("GET /v1/models"), HasSubstr(bearer));
  EXPECT_THAT(server.ask("GET /sdapi"), HasSubstr(bearer));
}

TEST(WrongAddresses, AreNotThereWhateverIsSentToThem) {
  FakeEngine engine;
  const Server server(engine);
  for (const std::string path :
       {"/v1/nothing", "/v1/chat/completions", "//v1/models", "/v1//models", "/v1/models/",
        "/v1/jobs/", "/v1/jobs//events", "/", "/v1/images/generations/", "/sdapi/v1/", "//"}) {
    for (const std::string type : {"text/plain", "multipart/form-data; boundary=x", "image/png"}) {
      const auto answer = server.ask("POST " + path, "content-type: " + type + "\r\n", "{}");
      EXPECT_EQ(status_of(answer), path == "/" ? 405 : 404) << path << type;
    }
    EXPECT_EQ(status_of(server.ask("GET " + path)), path == "/" ? 200 : 404) << path;
  }
  EXPECT_EQ(status_of(server.ask("GET /v1/jobs/0/pictures/")), 404);
  const auto other = server.ask("POST /v1/models", "content-type: text/plain\r\n", "{}");
  EXPECT_EQ(status_of(other), 405);
  EXPECT_THAT(other, HasSubstr("allow: GET, HEAD\r\n"));
  EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "content-type: text/plain\r\n", "{}")), 415);
  const Server locked(engine, {.key = "secret"});
  EXPECT_EQ(status_of(locked.ask("GET /v1/nothing")), 401) << "who has no key learns nothing";
}

TEST(WrongAddresses, CostNoConnection) {
  FakeEngine engine;
  const Server server(engine);
  RawClient client(server.port());
  for (const std::string path : {"/nothing", "/v1/nothing", "/livez"}) {
    client.send(Server::request_text("GET " + path, "", ""));
    ASSERT_TRUE(client.read_until(path == "/livez" ? "alive" : "there is nothing at " + path));
    ASSERT_TRUE(client.read_until("}"));
    client.forget();
  }
}

}  // namespace braid::serve::access_test
