// `braid serve` at a Unix socket, below a path, and what its log says of its work.
#include "serving.h"

namespace braid::serve_place_test {

using testing::HasSubstr;
using testing::Not;

class ServePlace : public Serve {
 protected:
  std::string asked(const std::string& path, const std::string& line,
                    const std::string& headers = "") const {
    serve::RawClient client(path);
    return client.asked(line + " HTTP/1.1\r\nhost: localhost\r\n" + headers +
                        "connection: close\r\n\r\n");
  }
  std::string with_host(const std::string& host, const std::string& headers) const {
    serve::RawClient client(port_);
    return client.asked("GET /v1/models HTTP/1.1\r\nhost: " + host + "\r\n" + headers +
                        "connection: close\r\n\r\n");
  }
};

TEST_F(ServePlace, MayBeAUnixSocket) {
  const std::string path = folder_ / "braid.sock";
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--unix-socket", path}, {"--host", "unix:" + path}}) {
    std::vector<std::string> arguments = {"serve"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Subprocess server({.arguments = arguments, .folder = folder_});
    ASSERT_TRUE(server.wait_for("event=ready"));
    EXPECT_THAT(asked(path, "GET /v1/models"), HasSubstr("\"demo\""));
    EXPECT_THAT(server.err(), HasSubstr("address=unix:"));
    server.send(SIGTERM);
    EXPECT_EQ(server.finish().exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST_F(ServePlace, IsBelowItsPathAndInTheFramesThatItAllows) {
  start({"--base-path", "/pictures/", "--frame-ancestors", "self", "--frame-ancestors",
         "https://home.example", "--allow-origin", "null"});
  serve::RawClient client(port_);
  const auto page =
      client.asked("GET /pictures/ HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  EXPECT_THAT(page, HasSubstr("<base href=\"/pictures/\">"));
  EXPECT_THAT(page, HasSubstr("frame-ancestors 'self' https://home.example\r\n"));
  EXPECT_THAT(with_host("localhost", "origin: null\r\n"), testing::StartsWith("HTTP/1.1 200"));
}

TEST_F(ServePlace, TakesEveryNameFromThoseWhoHaveTheKey) {
  start({"--api-key-file", write("key", "a key of some length\n"), "--allow-host", "*"});
  EXPECT_THAT(
      with_host("host.docker.internal:8188", "authorization: Bearer a key of some length\r\n"),
      testing::StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(with_host("host.docker.internal:8188", ""), testing::StartsWith("HTTP/1.1 401"));
}

// CLIP reads 77 tokens.
TEST_F(ServePlace, SaysInItsLogWhatTheEngineWarnsOf) {
  start({"--max-body", "2000", "--unknown-fields", "warn"});
  std::string prompt;
  for (int i = 0; i < 100; ++i) prompt += "word ";
  const auto answer =
      ask("POST /v1/images/generations",
          R"({"size": "32x32", "steps": 1, "promt": 1, "prompt": ")" + prompt + "\"}");
  EXPECT_THAT(answer, HasSubstr("its end is ignored"));
  EXPECT_THAT(answer, HasSubstr("there is no field 'promt'"));
  EXPECT_THAT(ask("POST /v1/jobs", std::string(2001, ' ')), HasSubstr("2000 bytes"));
  EXPECT_THAT(ask("GET /v1/capabilities"), HasSubstr("\"body_bytes\":2000"));
  const auto log = stop().err;
  EXPECT_THAT(log, HasSubstr("event=warning job="));
  EXPECT_THAT(log, HasSubstr("its end is ignored"));
  EXPECT_THAT(log, Not(HasSubstr("word word")));
}

TEST_F(ServePlace, SaysInItsLogWhatIsNotFollowed) {
  start({"--quantize", "int8", "--quantize-skip", "zzz"});
  EXPECT_THAT(stop().err, HasSubstr("event=warning model=demo message=\"--quantize-skip zzz names "
                                    "no layer of this model\""));
}

}  // namespace braid::serve_place_test
