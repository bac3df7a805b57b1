// HTTP/1.1 on one thread: reads requests, calls the API, and writes answers while jobs run
// elsewhere. Slow and silent clients cost a socket for a bounded time, and no thread.
#pragma once

#include "serve/api/api.h"

namespace braid::serve {

// What is logged of a request after its answer. 499: the client left, or did not read it in time;
// 408: its head or body did not come in time. Method and path are empty if they did not come whole.
struct RequestLog {
  std::string id, method, path, client;
  int status = 0;
  std::size_t bytes = 0;  // of the answer's body that were written
  double seconds = 0;
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // or "unix:/path/of/a/socket"
  int port = 8188;                    // 0: any free one; not of a Unix socket
  std::uint64_t max_body_bytes = std::uint64_t(RequestBounds().max_body_bytes);
  int max_connections = 2048;  // as far as room_for_connections() allows
  // Time limits for a whole head; for a body, plus a second for each 64 KiB that have come, and for
  // its silences; and for writing an answer, plus a second for each of its 64 KiB.
  std::chrono::milliseconds head_time{15'000}, body_time{60'000}, write_time{30'000};
  // How long a connection may rest between requests. It is longer than proxies keep idle ones
  // (nginx 60 s, Traefik 90 s, Caddy 120 s): who closes first may lose a request of the other. 0:
  // one request per connection.
  std::chrono::milliseconds keep_alive{130'000};
  std::chrono::milliseconds ping_interval{15'000};  // of idle event streams
  std::chrono::milliseconds stop_time{5'000};       // for answers in progress at the end
  std::function<void(const RequestLog&)> log = {};
  std::function<void(const std::string& sentence)> on_warning = {};  // of what went wrong here
};

class HttpServer {
 public:
  // Starts listening. Throws Error naming the address and the system's reason.
  HttpServer(const Api& api, HttpServerOptions options);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  int port() const;             // 0 of a Unix socket
  int num_connections() const;  // any thread
  void run();                   // returns some time after stop()
  void stop();                  // any thread; answers in progress are finished

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace braid::serve
