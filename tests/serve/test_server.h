// A server with a fake engine on its own port, and its answers.
#pragma once

#include <nlohmann/json.hpp>
#include <thread>

#include "fake_backend.h"
#include "raw_client.h"
#include "serve/http/http_server.h"
#include "wait_until.h"

namespace braid::serve {

class Server {
 public:
  explicit Server(FakeEngine& engine, Access access = {}, HttpServerOptions options = {},
                  ServiceOptions service = {}, const std::function<void(ApiContext&)>& adapt = {})
      : service_(engine.load(), std::move(service)),
        api_(adapted_context(adapt), std::move(access)),
        server_(api_, with_own_port(std::move(options))),
        thread_([this] { server_.run(); }) {
    service_.start();
    EXPECT_TRUE(wait_until([&] { return service_.status().readiness != Readiness::kLoading; }));
  }
  ~Server() {
    server_.stop();
    thread_.join();
  }
  int port() const { return server_.port(); }
  Service& service() { return service_; }
  const HttpServer& http() const { return server_; }
  void stop() { server_.stop(); }

  // The whole answer to one request on its own connection.
  std::string ask(const std::string& line, const std::string& headers = "",
                  const std::string& body = "") const {
    RawClient client(port());
    client.send(request_text(line, headers + "connection: close\r\n", body));
    return client.read_all();
  }
  static std::string request_text(const std::string& line, const std::string& headers,
                                  const std::string& body) {
    const auto length = body.empty() ? "" : text_of("content-length: ", body.size(), "\r\n");
    const auto type = headers.find("content-type") == std::string::npos && !body.empty()
                          ? "content-type: application/json\r\n"
                          : "";
    const auto host = headers.find("host:") == std::string::npos ? "host: localhost\r\n" : "";
    return line + " HTTP/1.1\r\n" + host + headers + length + type + "\r\n" + body;
  }

 private:
  ApiContext adapted_context(const std::function<void(ApiContext&)>& adapt) {
    ApiContext context{.service = service_};
    if (adapt) adapt(context);
    return context;
  }
  static HttpServerOptions with_own_port(HttpServerOptions options) {
    options.port = 0;
    return options;
  }

  Service service_;
  Api api_;
  HttpServer server_;
  std::thread thread_;
};

inline int status_of(const std::string& answer) {
  return answer.size() < 12 ? 0 : std::atoi(answer.c_str() + 9);
}

inline nlohmann::json json_of(const std::string& answer) {
  return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

}  // namespace braid::serve
