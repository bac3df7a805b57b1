// Answers as they are written: their time, and pictures that many clients read. The memory of
// requests, and the places of their bodies.
#include <gmock/gmock.h>

#include <cstring>

#include "base/ascii.h"
#include "resident_bytes.h"
#include "serve/http/body_places.h"
#include "serve/http/http_date.h"
#include "test_server.h"
#include "wait_until.h"

namespace braid::serve::http_messages_test {

using testing::HasSubstr;

TEST(HttpDate, IsInEnglishAndInUtc) {
  const auto date = [](std::time_t seconds) {
    return http_date(std::chrono::system_clock::from_time_t(seconds));
  };
  EXPECT_EQ(date(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT") << "RFC 9110, section 5.6.7";
  EXPECT_EQ(date(1'735'689'599), "Tue, 31 Dec 2024 23:59:59 GMT");
}

TEST(UsualHeaders, AreInEachAnswer) {
  FakeEngine engine;
  const Server server(engine);
  const auto stream = server.ask("POST /v1/images/generations", "",
                                 R"({"prompt": "a", "size": "16x16", "stream": true})");
  EXPECT_THAT(stream, HasSubstr("text/event-stream"));
  for (const auto& answer : {server.ask("GET /livez"), server.ask("GET /nothing"), stream}) {
    const auto head = ascii_lower_case(answer.substr(0, answer.find("\r\n\r\n")) + "\r\n");
    for (const auto* const line :
         {" gmt\r\n", "\r\ncache-control: no-store\r\n", "\r\nx-content-type-options: nosniff\r\n",
          "\r\nreferrer-policy: no-referrer\r\n"})
      EXPECT_THAT(head, HasSubstr(line));
  }
}

// The picture is more than sockets hold, so that each reader is in the middle of it.
TEST(Pictures, AreNotCopiedForTheirReaders) {
  FakeEngine engine([](Backend& backend) {
    backend.text = [](const Picture&, const Request&, const std::vector<InputFile>&) {
      return PngText{{"noise", std::string(16 << 20, 'x')}};
    };
  });
  Server server(engine);
  const std::string body = R"({"prompt": "a", "size": "16x16"})";
  const std::string id = json_of(server.ask("POST /v1/jobs", "", body))["id"];
  server.ask("GET /v1/jobs/" + id + "/events");
  const auto file = server.service().find(id)->status().pictures.front().file;
  const auto path = "/v1/jobs/" + id + "/pictures/0";
  std::vector<std::unique_ptr<RawClient>> readers;
  for (int i = 0; i < 8; ++i) {
    readers.push_back(std::make_unique<RawClient>(server.port()));
    readers.back()->send(Server::request_text("GET " + path, "", ""));
    ASSERT_TRUE(readers.back()->read_until("image/png"));
  }
  EXPECT_GT(file.use_count(), 8);
  readers.clear();
  const auto answer = server.ask("GET " + path);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n" + *file));
  EXPECT_THAT(answer, HasSubstr("Content-Length: " + std::to_string(file->size())));
  const auto head = server.ask("HEAD " + path);
  EXPECT_THAT(head, HasSubstr("Content-Length: " + std::to_string(file->size())));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

// Free memory between blocks in use stands for what the parts of a request leave.
TEST(LongBodies, LeaveNoFreeMemory) {
  if (is_sanitized()) GTEST_SKIP() << "sanitizers have memory of their own";
  FakeEngine engine;
  const Server server(engine);
  const auto body = R"({"prompt": "a", "x": ")" + std::string(5 << 20, 'x') + "\"}";
  constexpr std::size_t kBlock = 64 << 10, kBlocks = 2048;
  std::vector<std::unique_ptr<char[]>> blocks(kBlocks);
  for (auto& block : blocks) {
    block = std::make_unique_for_overwrite<char[]>(kBlock);
    std::memset(block.get(), 1, kBlock);
  }
  blocks.erase(blocks.begin(), blocks.end() - 1);
  MemoryMeter meter;
  const auto before = resident_bytes(meter);
  if (!meter.is_exact()) GTEST_SKIP() << "this kernel does not let the peak be reset";
  EXPECT_THAT(server.ask("POST /v1/jobs", "", body), HasSubstr("unknown_parameter"));
  const auto wanted = before - std::int64_t(kBlock * kBlocks / 2);
  EXPECT_TRUE(wait_until([&] { return resident_bytes(meter) < wanted; }));
}

// A Unix socket's clients are a proxy, which stands for many.
TEST(BodyPlaces, AreHalfOfThemAClients) {
  BodyPlaces places;
  std::vector<BodyPlaces::Held> held;
  for (const std::string client : {"10.0.0.1", "10.0.0.2"}) {
    while (const auto one = places.claim(client, std::nullopt)) held.push_back(*one);
    EXPECT_TRUE(places.claim(client, 2 << 10)) << "a small body needs none";
  }
  EXPECT_EQ(held.size(), 16u);
  EXPECT_FALSE(places.claim("10.0.0.3", 3 << 10));
  places.release(held.back());
  EXPECT_TRUE(places.claim("10.0.0.3", 3 << 10));
  BodyPlaces of_socket;
  int large = 0;
  while (of_socket.claim("unix", std::nullopt)) ++large;
  EXPECT_EQ(large, 16);
}

}  // namespace braid::serve::http_messages_test
