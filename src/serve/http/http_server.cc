#include "serve/http/http_server.h"

#include "base/error.h"
#include "serve/api_error.h"
#include "serve/http/connection.h"

namespace braid::serve {
namespace {

constexpr auto kAfterAcceptFailed = std::chrono::milliseconds(100);  // no descriptor is free, say
constexpr auto kLookAgain = std::chrono::milliseconds(20);

tcp::endpoint endpoint_of(const HttpServerOptions& options) {
  error_code error;
  const auto name = options.address == "localhost" ? "127.0.0.1" : options.address;
  const auto address = net::ip::make_address(name, error);
  require(!error, "the address to listen on should be one of this machine's, as 127.0.0.1 or ::, ",
          "it is '", options.address, "'");
  return {address, static_cast<unsigned short>(options.port)};
}

}  // namespace

class HttpServer::Listener {
 public:
  Listener(const Api& api, HttpServerOptions options)
      : shared_{.api = api, .options = std::move(options), .aside = aside_} {
    listen(endpoint_of(shared_.options));
    accept();
  }

  ~Listener() {
    aside_.threads.stop();
    aside_.threads.join();  // they use the context
  }

  int port() const { return port_; }
  int num_connections() const { return shared_.count; }
  void run() { io_.run(); }
  void stop() {
    net::post(io_, [this] { close(); });
  }

 private:
  void listen(const tcp::endpoint& endpoint);
  void accept();
  void close();
  void end_when_quiet();

  Shared shared_;  // outlives connections, which the context holds
  net::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  net::steady_timer retry_{io_}, last_{io_};
  Clock::time_point stopping_until_;
  int port_ = 0;
  Aside aside_;  // what was not begun ends with it, before the context
};

void HttpServer::Listener::listen(const tcp::endpoint& endpoint) {
  error_code error;
  const auto go_on = [&] {
    check(!error, "cannot listen on ", shared_.options.address, " port ", shared_.options.port,
          ": ", error.message());
  };
  acceptor_.open(endpoint.protocol(), error), go_on();
  acceptor_.set_option(net::socket_base::reuse_address(true), error), go_on();
  acceptor_.bind(endpoint, error), go_on();
  acceptor_.listen(net::socket_base::max_listen_connections, error), go_on();
  port_ = acceptor_.local_endpoint().port();
}

void HttpServer::Listener::accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (shared_.is_stopping) return;
    if (error) {
      retry_.expires_after(kAfterAcceptFailed);
      retry_.async_wait([this](error_code stopped) {
        if (!stopped && !shared_.is_stopping) accept();
      });
      return;
    }
    (void)socket.set_option(tcp::no_delay(true), error);
    const bool is_full = shared_.count >= shared_.options.max_connections;
    const auto connection = std::make_shared<Connection>(std::move(socket), shared_);
    if (is_full)
      connection->refuse_for_load();
    else
      connection->start();
    accept();
  });
}

void HttpServer::Listener::close() {
  if (shared_.is_stopping) return;
  shared_.is_stopping = true;
  error_code ignored;
  (void)acceptor_.close(ignored);
  retry_.cancel();
  for (auto* const connection : shared_.connections) connection->close_if_idle();
  stopping_until_ = Clock::now() + shared_.options.stop_time;
  end_when_quiet();
}

void HttpServer::Listener::end_when_quiet() {
  if (shared_.connections.empty() || Clock::now() > stopping_until_) return io_.stop();
  last_.expires_after(kLookAgain);
  last_.async_wait([this](error_code) { end_when_quiet(); });
}

HttpServer::HttpServer(const Api& api, HttpServerOptions options)
    : listener_(std::make_unique<Listener>(api, std::move(options))) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return listener_->port(); }
int HttpServer::num_connections() const { return listener_->num_connections(); }
void HttpServer::run() { listener_->run(); }
void HttpServer::stop() { listener_->stop(); }

}  // namespace braid::serve
