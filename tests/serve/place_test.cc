// Where a server stands: below a path, behind proxies that keep connections, at a Unix socket.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>
#include <future>

#include "temporary_folder.h"
#include "test_server.h"
#include "wait_until.h"

namespace braid::serve::place_test {

using testing::HasSubstr;
using testing::Not;

const std::string kSmall = R"({"prompt": "a", "size": "16x16", "steps": 1})";

std::string url_of(const Server& server, const std::string& headers) {
  const auto answer = server.ask("POST /v1/images/generations", headers,
                                 R"({"prompt": "a", "size": "16x16", "response_format": "url"})");
  return json_of(answer)["data"][0]["url"];
}

TEST(Place, BelowAPathIsInAllAddresses) {
  FakeEngine engine;
  const Server server(engine, {.base_path = "/pictures"});
  for (const std::string line : {"POST /pictures/v1/jobs", "POST /v1/jobs"}) {
    const auto answer = server.ask(line, "", kSmall);
    ASSERT_EQ(status_of(answer), 202) << answer;
    const std::string id = json_of(answer)["id"];
    EXPECT_THAT(answer, HasSubstr("location: /pictures/v1/jobs/" + id + "\r\n"));
    server.ask("GET /v1/jobs/" + id + "/events");
    const auto job = json_of(server.ask("GET /pictures/v1/jobs/" + id));
    EXPECT_EQ(job["pictures"][0]["url"], "/pictures/v1/jobs/" + id + "/pictures/0");
    EXPECT_EQ(status_of(server.ask("GET " + job["pictures"][0]["url"].get<std::string>())), 200);
  }
  EXPECT_THAT(url_of(server, "host: localhost:8188\r\n"),
              testing::StartsWith("http://localhost:8188/pictures/v1/jobs/"));
  EXPECT_EQ(status_of(server.ask("GET /picturesque")), 404);
}

// The page's own addresses begin at its base, with or without a slash at the end.
TEST(Place, BelowAPathIsThePagesBase) {
  FakeEngine engine;
  const Server server(engine);
  const auto page = server.ask("GET /", "x-forwarded-prefix: /pictures\r\n");
  EXPECT_THAT(page, HasSubstr("<base href=\"/pictures/\">"));
  EXPECT_THAT(page, HasSubstr("base-uri 'self'"));
  EXPECT_THAT(page, Not(HasSubstr("href=\"/page.css"))) << "relative to it";
  EXPECT_THAT(server.ask("GET /"), Not(HasSubstr("<base")));
  const auto description = json_of(server.ask("GET /openapi.json", "x-forwarded-prefix: /a\r\n"));
  EXPECT_EQ(description["servers"][0]["url"], "/a");
  const auto odd = server.ask("GET /", "x-forwarded-prefix: //evil.example\r\n");
  EXPECT_THAT(odd, Not(HasSubstr("evil.example")));
}

TEST(Place, IsTheOneThatTheProxyNames) {
  FakeEngine engine;
  const Server server(engine, {.hosts = {"pictures.example"}});
  EXPECT_THAT(url_of(server,
                     "host: localhost\r\nx-forwarded-proto: https, http\r\n"
                     "x-forwarded-host: pictures.example\r\nx-forwarded-prefix: /a\r\n"),
              testing::StartsWith("https://pictures.example/a/v1/jobs/"));
  EXPECT_THAT(url_of(server, "host: localhost\r\nx-forwarded-host: evil.example\r\n"),
              testing::StartsWith("http://localhost/v1/jobs/"))
      << "a name that is not allowed";
  const Server locked(engine, {.key = "secret"});
  EXPECT_THAT(url_of(locked,
                     "host: a\r\nx-forwarded-host: any.example\r\n"
                     "authorization: Bearer secret\r\n"),
              testing::StartsWith("http://any.example/v1/jobs/"));
}

TEST(Place, MayBeAFrameOfNamedPages) {
  FakeEngine engine;
  const Server closed(engine);
  EXPECT_THAT(closed.ask("GET /"), HasSubstr("frame-ancestors 'none'\r\n"));
  const Server open(engine, {}, {}, {}, [](ApiContext& context) {
    context.frame_ancestors = "'self' https://home.example";
  });
  EXPECT_THAT(open.ask("GET /"), HasSubstr("frame-ancestors 'self' https://home.example\r\n"));
}

// A head that has begun has its own time; a connection that rests has another.
TEST(KeepAlive, IsLongerThanTheTimeForAHead) {
  FakeEngine engine;
  const Server server(engine, {}, {.head_time = std::chrono::milliseconds(400)});
  RawClient rests(server.port()), begins(server.port());
  for (auto* const client : {&rests, &begins}) {
    client->send(Server::request_text("GET /livez", "", ""));
    ASSERT_TRUE(client->read_until("alive"));
    client->forget();
  }
  begins.send("GET /livez HT");
  EXPECT_EQ(status_of(begins.read_all()), 408) << "after its time";
  rests.send(Server::request_text("GET /livez", "connection: close\r\n", ""));
  EXPECT_THAT(rests.read_all(), HasSubstr("alive"));
}

TEST(KeepAlive, EndsAtItsTime) {
  FakeEngine engine;
  const Server server(engine, {}, {.keep_alive = std::chrono::milliseconds(50)});
  RawClient client(server.port());
  client.send(Server::request_text("GET /livez", "", ""));
  ASSERT_TRUE(client.read_until("alive"));
  client.read_all();
  const Server never(engine, {}, {.keep_alive = std::chrono::seconds(0)});
  RawClient once(never.port());
  EXPECT_THAT(once.asked(Server::request_text("GET /livez", "", "")),
              HasSubstr("Connection: close"));
}

// Connections that rest give way to new ones, the longest first.
TEST(KeepAlive, KeepsNobodyOut) {
  FakeEngine engine;
  const Server server(engine, {}, {.max_connections = 2});
  RawClient first(server.port()), second(server.port());
  for (auto* const client : {&first, &second}) {
    client->send(Server::request_text("GET /livez", "", ""));
    ASSERT_TRUE(client->read_until("alive"));
    client->forget();
  }
  EXPECT_EQ(status_of(server.ask("GET /livez")), 200);
  EXPECT_EQ(first.read_all(), "");
  second.send(Server::request_text("GET /livez", "connection: close\r\n", ""));
  EXPECT_THAT(second.read_all(), HasSubstr("alive"));
}

// So do those that have not begun a request, or do not end its head.
TEST(KeepAlive, LetsSilentClientsKeepNobodyOut) {
  FakeEngine engine;
  const Server server(engine, {}, {.max_connections = 2});
  RawClient silent(server.port()), half(server.port());
  half.send("GET /livez HT");
  EXPECT_EQ(status_of(server.ask("GET /livez")), 200);
  EXPECT_EQ(silent.read_all(), "");
  RawClient another(server.port());
  EXPECT_EQ(status_of(server.ask("GET /livez")), 200);
  EXPECT_EQ(half.read_all(), "");
  another.send(Server::request_text("GET /livez", "connection: close\r\n", ""));
  EXPECT_THAT(another.read_all(), HasSubstr("alive"));
}

// RFC 9112, section 9.6; as `nc -N` and scripts do.
TEST(HalfClosed, ConnectionsThatAskForNoMoreGetTheirAnswer) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  const std::string stream = R"({"prompt": "a", "size": "16x16", "stream": true})";
  RawClient whole(server.port()), old(server.port()), events(server.port());
  whole.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n", kSmall));
  old.send(
      "POST /v1/images/generations HTTP/1.0\r\nhost: localhost\r\ncontent-type: "
      "application/json\r\ncontent-length: " +
      std::to_string(kSmall.size()) + "\r\n\r\n" + kSmall);
  events.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n", stream));
  for (auto* const client : {&whole, &old, &events}) client->close_own_direction();
  ASSERT_TRUE(wait_until([&] {
    const auto status = server.service().status();
    return status.running + status.waiting == 3;
  })) << "one was taken to have left";
  ASSERT_TRUE(events.read_until("event-stream")) << "the server has noticed the ends by now";
  engine.finish();
  EXPECT_THAT(whole.read_all(), HasSubstr("b64_json"));
  EXPECT_THAT(old.read_all(), HasSubstr("b64_json"));
  EXPECT_THAT(events.read_all(), HasSubstr("image_generation.completed"));
}

TEST(HalfClosed, ConnectionsThatWouldGoOnHaveLeft) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  RawClient client(server.port());
  client.send(Server::request_text("POST /v1/images/generations", "", kSmall));
  engine.wait_until_called(1);
  client.close_own_direction();
  EXPECT_TRUE(wait_until([&] { return server.service().status().running == 0; }));
  EXPECT_EQ(client.read_all(), "");
}

// Who is gone for good is noticed at the next piece of a stream.
TEST(HalfClosed, StreamsEndWhereNobodyReads) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine, {}, {.ping_interval = std::chrono::milliseconds(20)});
  RawClient client(server.port());
  client.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n",
                                   R"({"prompt": "a", "size": "16x16", "stream": true})"));
  ASSERT_TRUE(client.read_until("event-stream"));
  engine.wait_until_called(1);
  client.leave();
  EXPECT_TRUE(wait_until([&] { return server.service().status().running == 0; }));
}

class UnixSocket : public testing::Test {
 protected:
  // A socket at the path, which need not be listened on.
  int bound() const {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static std::string asked(const std::string& path) {
    return RawClient(path).asked(
        Server::request_text("GET /v1/models", "connection: close\r\n", ""));
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "braid.sock", address_ = "unix:" + path_;
  FakeEngine engine_;
};

TEST_F(UnixSocket, IsListenedOnByTheUserAndTheGroup) {
  {
    const Server server(engine_, {}, {.address = address_});
    EXPECT_EQ(server.port(), 0);
    EXPECT_THAT(asked(path_), HasSubstr("\"demo\""));
    struct stat status {};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0660u);
    RawClient other(path_);
    EXPECT_EQ(status_of(other.asked("GET /v1/models HTTP/1.0\r\nhost: evil.example\r\n\r\n")), 403)
        << "a proxy may pass it on";
  }
  EXPECT_FALSE(std::filesystem::exists(path_)) << "it is removed at the end";
}

TEST_F(UnixSocket, TakesThePlaceOfOneThatNobodyListensOn) {
  ::close(bound());
  const Server server(engine_, {}, {.address = address_});
  EXPECT_EQ(status_of(asked(path_)), 200);
  EXPECT_THROW(Server(engine_, {}, {.address = address_}), Error) << "another server listens";
  EXPECT_EQ(status_of(asked(path_)), 200) << "which goes on";
}

TEST_F(UnixSocket, IsTakenByOneOfThoseThatStartAtOnce) {
  for (int round = 0; round < 20; ++round) {
    ::close(bound());  // a killed server's
    std::promise<void> begin;
    const auto at_once = begin.get_future().share();
    std::vector<std::future<std::unique_ptr<Server>>> starting;
    for (int i = 0; i < 4; ++i)
      starting.push_back(std::async(std::launch::async, [&, at_once]() -> std::unique_ptr<Server> {
        at_once.wait();
        try {
          return std::make_unique<Server>(engine_, Access(),
                                          HttpServerOptions{.address = address_});
        } catch (const Error&) {
          return nullptr;
        }
      }));
    begin.set_value();
    std::vector<std::unique_ptr<Server>> servers;
    for (auto& one : starting)
      if (auto server = one.get()) servers.push_back(std::move(server));
    ASSERT_EQ(servers.size(), 1u);
    EXPECT_EQ(status_of(asked(path_)), 200);
    servers.clear();
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "neither the lock's file stays";
  }
}

TEST_F(UnixSocket, IsLeftToAServerThatIsAboutToListen) {
  const auto lock = path_ + ".lock";
  const int fd = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_THROW(Server(engine_, {}, {.address = address_}), Error);
  EXPECT_TRUE(std::filesystem::exists(lock));
  ::close(fd);
  const Server server(engine_, {}, {.address = address_});
  EXPECT_EQ(status_of(asked(path_)), 200) << "a killed one's lock is none";
  EXPECT_FALSE(std::filesystem::exists(lock));
}

// A stopped server, say, whose queue is full: connecting would wait for ever.
TEST_F(UnixSocket, IsLeftToAServerThatAcceptsNobody) {
  const int socket = bound();
  ASSERT_EQ(::listen(socket, 0), 0);
  const RawClient waiting(path_);
  EXPECT_THROW(Server(engine_, {}, {.address = address_}), Error);
  ::close(socket);
}

TEST_F(UnixSocket, TakesThePlaceOfNothingElse) {
  std::ofstream(path_) << "a file";
  EXPECT_THROW(Server(engine_, {}, {.address = address_}), InputError);
  EXPECT_EQ(std::filesystem::file_size(path_), 6u);
  EXPECT_THROW(Server(engine_, {}, {.address = "unix:"}), InputError);
  EXPECT_THROW(Server(engine_, {}, {.address = "unix:/" + std::string(200, 'a')}), InputError);
  EXPECT_THROW(Server(engine_, {}, {.address = "unix:" + (folder_ / "no/socket").string()}), Error);
}

}  // namespace braid::serve::place_test
