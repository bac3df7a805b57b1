#include "serve/http/connection.h"

#include "base/ascii.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kMostHeadBytes = 16 << 10;
constexpr std::size_t kMostBytesAtOnce = 64 << 10;
constexpr std::uint64_t kMostDiscarded = std::uint64_t(64) << 20;
// Bodies take memory. Those that take a millisecond to read do so on the server's thread.
constexpr std::uint64_t kSmallBody = 2 << 10, kLargeBody = 256 << 10;  // bytes
constexpr std::size_t kReadHere = 64 << 10;
constexpr int kMostPlaces = 64, kPlacesOfLarge = 4;
constexpr auto kLingering = std::chrono::seconds(2);
constexpr std::size_t kSlowestReader = 64 << 10;  // bytes per second

// Otherwise the client is gone or too slow.
bool is_malformed(error_code error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

ApiError not_http(error_code error) {
  return {400, "this is not an HTTP request: " + error.message(), "bad_request"};
}

// A proxy in front may read other requests from what is ambiguous (RFC 9112, section 6.3), or
// check the other one of two headers.
void require_plain(const http::fields& head) {
  for (const auto* const name : {"host", "origin", "authorization", "content-type"})
    if (head.count(name) > 1)
      throw ApiError(400, std::string("there are several ") + name + " headers", "bad_request");
  const auto coding = head[http::field::transfer_encoding];
  if (!coding.empty() && !boost::beast::iequals(coding, "chunked"))
    throw ApiError(400, "the transfer encoding should be chunked alone", "bad_request");
}

// Answers without a body, which have no length either.
bool is_bodiless(int status) { return status == 204 || status == 304; }

}  // namespace

// Proxies keep connections for minutes; a head that has begun must come soon.
void Connection::wait_for_next() {
  if (buffer_.size() > 0) return read_head();
  if (shared_.is_stopping) return;
  is_idle_ = true;
  rests_since_ = Clock::now();
  stream_.expires_after(shared_.options.keep_alive);
  stream_.async_read_some(buffer_.prepare(kMostBytesAtOnce),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            self->rests_since_.reset();
                            self->buffer_.commit(bytes);
                            if (!error) self->read_head();
                          });
}

void Connection::read_head() {
  if (shared_.is_stopping) return;
  parser_.emplace();
  parser_->header_limit(kMostHeadBytes);
  parser_->body_limit(shared_.options.max_body_bytes);
  request_ = {};
  answer_ = {};
  release_places();
  is_streaming_ = is_answered_ = has_unread_body_ = false;
  bytes_sent_ = 0;
  is_idle_ = true;
  stream_.expires_after(shared_.options.head_time);
  http::async_read_header(stream_, buffer_, *parser_, bound(&Connection::on_head));
}

void Connection::on_head(error_code error) {
  is_idle_ = false;
  began_ = Clock::now();
  if (error && !is_malformed(error)) return;  // gone, or too slow
  has_unread_body_ = true;
  request_.id = random_id();
  if (error == http::error::header_limit)
    return fail({431, "the head is too long", "head_too_large"});
  const bool is_too_long = error == http::error::body_limit;
  if (error && !is_too_long) return fail(not_http(error));
  try {
    fill_request();
  } catch (const ApiError& refusal) {
    return fail(refusal);
  }
  if (is_too_long) return fail(shared_.api.body_too_large(shared_.options.max_body_bytes));
  try {
    shared_.api.admit(request_);
  } catch (const ApiError& refusal) {
    return refuse(refusal);
  }
  if (!claim_places()) {
    ApiError busy(503, "there are too many large requests at once", "too_many_large_requests");
    busy.retry_after = 2;
    return fail(busy);
  }
  read_body();
}

// A body of unknown length may be large.
bool Connection::claim_places() {
  const auto length = parser_->content_length();
  if (parser_->is_done() || (length && *length <= kSmallBody)) return true;
  const int wanted = length && *length <= kLargeBody ? 1 : kPlacesOfLarge;
  if (shared_.places + wanted > kMostPlaces) return false;
  shared_.places += wanted;
  places_ = wanted;
  return true;
}

void Connection::release_places() {
  shared_.places -= places_;
  places_ = 0;
}

void Connection::fill_request() {
  const auto& head = parser_->get();
  request_.method = std::string(head.method_string());
  for (const auto& field : head) {
    const auto name = field.name_string(), value = field.value();
    request_.headers[ascii_lower_case({name.data(), name.size()})].assign(value.data(),
                                                                          value.size());
  }
  require_plain(head);
  error_code unknown;
  request_.version = int(head.version());
  request_.client_address = address_text(stream_.socket().remote_endpoint(unknown));
  request_.server_address = address_text(stream_.socket().local_endpoint(unknown));
  const auto target = head.target();
  read_target({target.data(), target.size()}, request_);
}

void Connection::read_body() {
  if (parser_->is_done()) return dispatch();
  stream_.expires_after(shared_.options.body_time);
  const bool is_asked = ascii_lower_case(request_.header("expect")) == "100-continue";
  if (!is_asked || parser_->get().version() < 11) {
    http::async_read(stream_, buffer_, *parser_, bound(&Connection::on_body));
    return;
  }
  piece_ = "HTTP/1.1 100 Continue\r\n\r\n";
  net::async_write(stream_, net::buffer(piece_),
                   [self = shared_from_this()](error_code error, std::size_t) {
                     if (error) return;
                     http::async_read(self->stream_, self->buffer_, *self->parser_,
                                      self->bound(&Connection::on_body));
                   });
}

void Connection::on_body(error_code error) {
  if (error == http::error::body_limit)
    return fail(shared_.api.body_too_large(shared_.options.max_body_bytes));
  if (!error) return dispatch();
  if (is_malformed(error)) fail(not_http(error));
}

void Connection::dispatch() {
  has_unread_body_ = false;
  request_.body = std::move(parser_->get().body());
  keeps_alive_ = parser_->get().keep_alive() && shared_.options.keep_alive.count() > 0;
  stream_.expires_never();
  if (request_.body.size() <= kReadHere) return answer_with(shared_.api.handle(request_));
  answer_aside(shared_.aside.threads.get_executor(),
               [this] { return shared_.api.handle(request_); });
}

// Other clients are served meanwhile. Connections belong to the server's thread, also their ends.
void Connection::answer_aside(const net::any_io_executor& aside, std::function<Answer()> work) {
  net::post(aside, [self = shared_from_this(), work = std::move(work)]() mutable {
    auto answer = work();
    const auto here = self->stream_.get_executor();
    net::post(here, [self = std::move(self), answer = std::move(answer)]() mutable {
      self->answer_with(std::move(answer));
    });
  });
}

void Connection::answer_with(Answer answer) {
  if (is_answered_) return;  // the client left meanwhile
  request_.body = {};
  if (answer.rest)
    return answer_aside(shared_.aside.one_by_one,
                        [this, rest = std::move(answer.rest)] { return shared_.api.finish(rest); });
  answer_ = std::move(answer);
  release_places();
  if (!answer_.job) return send(std::move(answer_.now));
  if (request_.method == "HEAD") return send({.content_type = kEventStream});
  wait_for_job();
}

void Connection::fail(const ApiError& error) {
  keeps_alive_ = false;
  send(error_response(error));
}

// What was understood and has no body to be read costs no connection.
void Connection::refuse(const ApiError& error) {
  has_unread_body_ = !parser_->is_done();
  const bool may_go_on = error.status != 400 && shared_.options.keep_alive.count() > 0;
  keeps_alive_ = may_go_on && !has_unread_body_ && parser_->get().keep_alive();
  send(error_response(error));
}

void Connection::refuse_for_load() {
  began_ = Clock::now();
  has_unread_body_ = true;
  lingers_until_ = began_ + kLingering;
  ApiError error(503, "there are too many connections", "too_many_connections");
  error.retry_after = 5;
  fail(error);
}

void Connection::send(HttpResponse response) {
  is_answered_ = true;
  keeps_alive_ = keeps_alive_ && !shared_.is_stopping;
  const int version = parser_ && parser_->is_header_done() ? int(parser_->get().version()) : 11;
  auto& out = response_.emplace(http::status(response.status), unsigned(version));
  if (!is_bodiless(response.status)) out.set(http::field::content_type, response.content_type);
  out.set(http::field::cache_control, "no-store");
  out.set("x-content-type-options", "nosniff");
  out.set("referrer-policy", "no-referrer");
  if (!request_.id.empty()) out.set("x-request-id", request_.id);
  for (const auto& [name, value] : response.headers) out.set(name, value);
  for (const auto& [name, value] : shared_.api.access().headers_for(request_)) out.set(name, value);
  out.keep_alive(keeps_alive_);
  out.body() = std::move(response.body);
  if (!is_bodiless(response.status)) out.prepare_payload();
  bytes_sent_ = out.body().size();
  if (request_.method == "HEAD") out.body().clear();
  allow_time_to_write(out.body().size());
  is_writing_ = true;
  http::async_write(stream_, *response_,
                    [self = shared_from_this()](error_code error, std::size_t) {
                      self->is_writing_ = false;
                      self->log(int(self->response_->result_int()));
                      self->response_.reset();
                      if (!error) self->after_answer();
                    });
}

// A whole answer, however long, is one operation with one limit.
void Connection::allow_time_to_write(std::size_t bytes) {
  stream_.expires_after(shared_.options.write_time + std::chrono::seconds(bytes / kSlowestReader));
}

void Connection::after_answer() {
  subscription_.reset();
  answer_ = {};
  if (!keeps_alive_) {
    error_code ignored;
    (void)stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (is_watching_) stream_.cancel();  // it would keep the connection open
    if (!has_unread_body_) return;
    if (!lingers_until_) lingers_until_ = Clock::now() + shared_.options.body_time;
    return linger();
  }
  if (is_watching_)
    stream_.cancel();  // then waits for the next head
  else
    wait_for_next();
}

// Closing a socket with unread bytes would discard the answer of a client that is still sending.
void Connection::linger() {
  buffer_.clear();
  stream_.expires_at(std::min(Clock::now() + kLingering, *lingers_until_));
  stream_.async_read_some(buffer_.prepare(kMostBytesAtOnce),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            self->discarded_ += bytes;
                            if (!error && self->discarded_ < kMostDiscarded) self->linger();
                          });
}

}  // namespace braid::serve
