#include "serve/http/http_server.h"

#include <poll.h>

#include "base/error.h"
#include "serve/api/address.h"
#include "serve/api_error.h"
#include "serve/http/connection.h"
#include "serve/http/endpoints.h"

namespace braid::serve {
namespace {

constexpr auto kAfterAcceptFailed = std::chrono::milliseconds(100);
constexpr auto kLookAgain = std::chrono::milliseconds(20);

Endpoint endpoint_of(const HttpServerOptions& options) {
  error_code error;
  if (options.address.starts_with(kUnix)) return UnixSocketFile::endpoint_of(options.address);
  const auto address = net::ip::make_address(address_to_listen_on(options.address), error);
  require(!error, "the address to listen on should be one of this machine's, as 127.0.0.1 or ::, ",
          "or unix:PATH, it is '", options.address, "'");
  return tcp::endpoint(address, static_cast<unsigned short>(options.port));
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
    for (auto* const connection : shared_.connections) connection->stop_waiting();
    for (auto* const pool : {&aside_.threads, &aside_.waiting}) pool->stop();
    for (auto* const pool : {&aside_.threads, &aside_.waiting})
      pool->join();  // they use the context
  }

  int port() const { return port_; }
  int num_connections() const { return shared_.count; }
  void run();
  void stop() {
    net::post(io_, [this] { close(); });
  }

 private:
  void listen(const Endpoint& endpoint);
  void accept();
  void accept_later(error_code error);
  bool has_client_waiting();
  bool close_one_between_requests();
  void close();
  void end_when_quiet();
  void warn(const std::string& sentence) {
    if (shared_.options.on_warning) shared_.options.on_warning(sentence);
  }

  Shared shared_;  // outlives connections, which the context holds
  net::io_context io_{1};
  net::basic_socket_acceptor<net::generic::stream_protocol> acceptor_{io_};
  std::optional<UnixSocketFile> socket_file_;  // removed while its server still listens
  net::steady_timer retry_{io_}, last_{io_};
  Clock::time_point stopping_until_;
  int port_ = 0;
  bool has_told_of_descriptors_ = false;
  Aside aside_;  // what was not begun ends with it, before the context
};

void HttpServer::Listener::listen(const Endpoint& endpoint) {
  const auto& address = shared_.options.address;
  const bool is_unix = address.starts_with(kUnix);
  const auto port = is_unix ? "" : text_of(" port ", shared_.options.port);
  error_code error;
  const auto go_on = [&] {
    check(!error, "cannot listen on ", address, port, ": ", error.message());
  };
  std::optional<UnixSocketClaim> claim;
  if (is_unix) claim.emplace(address), UnixSocketFile::make_room(address);
  acceptor_.open(endpoint.protocol(), error), go_on();
  if (!is_unix) acceptor_.set_option(net::socket_base::reuse_address(true), error), go_on();
  // :: is for IPv4, too, whatever the system's default is.
  if (address_to_listen_on(address) == "::")
    acceptor_.set_option(net::ip::v6_only(false), error), go_on();
  acceptor_.bind(endpoint, error), go_on();
  if (is_unix) socket_file_.emplace(address);
  acceptor_.listen(net::socket_base::max_listen_connections, error), go_on();
  if (!is_unix) port_ = port_of(acceptor_.local_endpoint());
}

// What one connection throws ends that connection alone.
void HttpServer::Listener::run() {
  for (;;) {
    try {
      io_.run();
      return;
    } catch (const std::exception& failure) {
      warn(text_of("a connection was closed: ", failure.what()));
    }
  }
}

void HttpServer::Listener::accept() {
  acceptor_.async_accept([this](error_code error, Socket socket) {
    if (shared_.is_stopping) return;
    if (error) return accept_later(error);
    accept();
    (void)socket.set_option(tcp::no_delay(true), error);
    const bool is_full =
        shared_.count >= shared_.options.max_connections && !close_one_between_requests();
    const auto connection = std::make_shared<Connection>(std::move(socket), shared_);
    if (is_full)
      connection->refuse_for_load();
    else
      connection->start();
  });
}

// Where no descriptor is free, the connection that has waited longest gives its own, as where there
// are too many connections. Accepting then fails also while no client waits.
void HttpServer::Listener::accept_later(error_code error) {
  const bool lacks_descriptors = error == net::error::no_descriptors ||
                                 error == boost::system::errc::too_many_files_open_in_system;
  if (lacks_descriptors && !has_client_waiting())
    return acceptor_.async_wait(net::socket_base::wait_read, [this](error_code stopped) {
      if (!stopped && !shared_.is_stopping) accept();
    });
  if (lacks_descriptors && !std::exchange(has_told_of_descriptors_, true))
    warn(text_of("cannot accept connections: ", error.message(),
                 "; those that rest are closed for new ones"));
  const bool has_closed_one = lacks_descriptors && close_one_between_requests();
  retry_.expires_after(has_closed_one ? std::chrono::milliseconds(0) : kAfterAcceptFailed);
  retry_.async_wait([this](error_code stopped) {
    if (!stopped && !shared_.is_stopping) accept();
  });
}

bool HttpServer::Listener::has_client_waiting() {
  pollfd listening{.fd = acceptor_.native_handle(), .events = POLLIN, .revents = 0};
  return ::poll(&listening, 1, 0) > 0;
}

// The connection that has waited longest for a request. False if none does.
bool HttpServer::Listener::close_one_between_requests() {
  Connection* longest = nullptr;
  for (auto* const one : shared_.connections)
    if (one->rests_since() && (!longest || *one->rests_since() < *longest->rests_since()))
      longest = one;
  if (longest) longest->close_if_idle();
  return longest != nullptr;
}

void HttpServer::Listener::close() {
  if (shared_.is_stopping) return;
  shared_.is_stopping = true;
  socket_file_.reset();  // behind the end of listening it might be another server's
  error_code ignored;
  (void)acceptor_.close(ignored);
  retry_.cancel();
  for (auto* const connection : shared_.connections) connection->close_if_idle();
  for (auto* const connection : shared_.connections) connection->stop_waiting();
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
