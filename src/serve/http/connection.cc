#include "serve/http/connection.h"

#include "serve/api_error.h"
#include "serve/http/body_reader.h"
#include "serve/outcome.h"

namespace braid::serve {
namespace {

constexpr std::size_t kMostBytesAtOnce = 64 << 10;
// Bytes of requests, and of pictures in answers: a millisecond's.
constexpr std::size_t kReadHere = 64 << 10, kWrittenHere = 64 << 10;
constexpr std::size_t kMostBytesAhead = 64 << 10;  // sent by a client before it has its answer

}  // namespace

// Proxies keep connections for minutes; a head that has begun must come soon.
void Connection::wait_for_next() {
  if (begins_head(buffer_)) return read_head();
  if (shared_.is_stopping) return;
  is_idle_ = true;
  rests_since_ = Clock::now();
  stream_.expires_after(shared_.options.keep_alive);
  stream_.async_read_some(buffer_.prepare(kMostBytesAtOnce),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            self->buffer_.commit(bytes);
                            if (!error) self->wait_for_next();
                          });
}

void Connection::read_head() {
  if (shared_.is_stopping) return;
  parser_.emplace();
  parser_->header_limit(kMostBytesOfHead);
  parser_->body_limit(shared_.options.max_body_bytes);
  begin_request();
  answer_ = {};
  release_places();
  is_streaming_ = is_answered_ = has_unread_body_ = false;
  bytes_sent_ = 0;
  is_idle_ = true;
  rests_since_ = Clock::now();
  limit_.start({.began = *rests_since_, .time = shared_.options.head_time});
  async_read_head({stream_, buffer_, *parser_, limit_}, bound(&Connection::on_head));
}

// A head that began and does not end: its client is gone or too slow, or the server closes it.
void Connection::on_cut_head(error_code error) {
  if (!parser_->got_some() && !begins_head(buffer_)) return;
  if (error != boost::beast::error::timeout)
    return log(error == net::error::operation_aborted ? 503 : kClientLeft);
  fail_late(head_too_slow(shared_.options.head_time));
}

void Connection::on_head(error_code error) {
  is_idle_ = false;
  const auto since = std::exchange(rests_since_, std::nullopt);
  const bool is_cut = error && !is_malformed(error);
  began_ = is_cut && since ? *since : Clock::now();
  if (is_cut) return on_cut_head(error);
  has_unread_body_ = true;
  if (error == http::error::header_limit) return fail(head_too_long());
  const bool is_too_long = error == http::error::body_limit;
  if (error && !is_too_long) return fail(not_http(error));
  try {
    read_request_head(parser_->get(), request_);
  } catch (const ApiError& refusal) {
    return fail(refusal);
  }
  try {
    shared_.api.admit(request_);
    read_request_query(parser_->get(), request_);
  } catch (const ApiError& refusal) {
    return refuse(refusal);
  }
  if (is_too_long) return refuse(shared_.api.body_too_large(shared_.options.max_body_bytes));
  if (!claim_places())
    return fail(
        busy_for(2, "there are too many large requests at once", "too_many_large_requests"));
  read_body();
}

bool Connection::claim_places() {
  if (parser_->is_done()) return true;
  const auto length = parser_->content_length();
  const auto bytes = length ? std::optional<std::uint64_t>(*length) : std::nullopt;
  const auto claimed = shared_.places.claim(request_.client_address, bytes);
  places_ = claimed.value_or(BodyPlaces::Held{});
  return claimed.has_value();
}

void Connection::read_body() {
  if (parser_->is_done()) return dispatch();
  limit_.start(
      {.began = Clock::now(), .time = shared_.options.body_time, .slowest = kSlowestClient});
  async_read_body({stream_, buffer_, *parser_, limit_}, bound(&Connection::on_body));
}

void Connection::on_body(error_code error) {
  if (error == http::error::body_limit)
    return fail(shared_.api.body_too_large(shared_.options.max_body_bytes));
  if (error == http::error::header_limit) return fail(trailers_too_long());
  if (!error) return dispatch();
  if (error == boost::beast::error::timeout)
    return fail_late(body_too_slow(limit_, shared_.options.body_time));
  if (is_malformed(error)) return fail(not_http(error));
  shared_.api.count(request_, kClientLeft);
  log(kClientLeft);
}

void Connection::dispatch() {
  has_unread_body_ = false;
  request_.body = std::move(parser_->get().body());
  body_bytes_ = request_.body.size();
  keeps_alive_ = may_go_on(parser_->get()) && shared_.options.keep_alive.count() > 0;
  stream_.expires_never();
  if (request_.body.size() <= kReadHere) return answer_with(shared_.api.handle(request_));
  answer_aside(shared_.aside.threads.get_executor(),
               [this] { return shared_.api.handle(request_); });
}

// Other clients are served meanwhile.
void Connection::answer_aside(const net::any_io_executor& aside, std::function<Answer()> work) {
  do_aside(aside, std::move(work), [this](Answer answer) { answer_with(std::move(answer)); });
}

void Connection::answer_with(Answer answer) {
  waits_elsewhere_ = false;
  if (is_answered_)  // the client left meanwhile
    return answer.when_gone ? answer.when_gone() : void();
  request_.body = {};
  if (answer.elsewhere) return wait_elsewhere(std::move(answer));
  if (answer.rest) {
    answer_ = {.when_gone = std::move(answer.when_gone)};
    return finish_on(shared_.aside.one_by_one, std::move(answer.rest));
  }
  answer_ = std::move(answer);
  release_places();
  shared_.aside.give_back_after(std::exchange(body_bytes_, 0));
  if (!answer_.job) return send(std::move(answer_.now));
  if (request_.method == "HEAD") return send({.content_type = kEventStream});
  wait_for_job();
}

void Connection::wait_elsewhere(Answer answer) {
  release_places();
  waits_elsewhere_ = true;
  answer_ = {.when_gone = std::move(answer.when_gone)};
  finish_on(shared_.aside.waiting.get_executor(), std::move(answer.elsewhere));
}

// Who leaves meanwhile costs no more work than what has begun, here or on another machine.
void Connection::finish_on(const net::any_io_executor& aside, std::function<Answer()> work) {
  watch_client();
  answer_aside(aside,
               [this, work = std::move(work)] { return shared_.api.finish(request_, work); });
}

void Connection::fail(const ApiError& error) {
  shared_.api.count(request_, error.status);
  keeps_alive_ = false;
  send(error_response(error));
}

// Who was slow may go on being so.
void Connection::fail_late(const ApiError& error) {
  has_unread_body_ = true;
  lingers_until_ = Clock::now() + kLingering;
  fail(error);
}

// What was understood and has no body to be read costs no connection.
void Connection::refuse(const ApiError& error) {
  shared_.api.count(request_, error.status);
  has_unread_body_ = !parser_->is_done();
  const bool was_understood = error.status != 400 && shared_.options.keep_alive.count() > 0;
  keeps_alive_ = was_understood && !has_unread_body_ && may_go_on(parser_->get());
  send(error_response(error));
}

void Connection::refuse_for_load() {
  began_ = Clock::now();
  begin_request();
  fail_late(busy_for(5, "there are too many connections", "too_many_connections"));
}

void Connection::send(HttpResponse response) {
  is_answered_ = true;
  keeps_alive_ = keeps_alive_ && !shared_.is_stopping;
  const auto more = shared_.api.access().headers_for(request_);
  auto& out = response_.emplace(boost_response(std::move(response), request_, more));
  out.keep_alive(keeps_alive_);
  if (request_.method == "HEAD") out.body() = {};
  bytes_sent_ = out.body().size();
  allow_time_to_write(out.body().size());
  is_writing_ = true;
  http::async_write(stream_, *response_,
                    [self = shared_from_this()](error_code error, std::size_t bytes) {
                      auto& sent = *self->response_;
                      if (error) self->bytes_sent_ = body_bytes_written(sent, bytes);
                      const int status = int(sent.result_int());
                      self->response_.reset();
                      self->end_answer(status, error);
                    });
}

// Where writing fails, the client has not got what the status says.
void Connection::end_answer(int status, error_code error) {
  is_writing_ = false;
  log(error ? kClientLeft : status);
  if (!error) return after_answer();
  keeps_alive_ = false;
  stream_.close();
}

// A whole answer, however long, is one operation with one limit.
void Connection::allow_time_to_write(std::size_t bytes) {
  stream_.expires_after(shared_.options.write_time + std::chrono::seconds(bytes / kSlowestClient));
}

void Connection::after_answer() {
  subscription_.reset();
  answer_ = {};
  if (!keeps_alive_) {
    error_code ignored;
    (void)stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (is_watching_) stream_.cancel();  // it would keep the connection open
    if (!has_unread_body_) return;
    const auto until = lingers_until_.value_or(Clock::now() + shared_.options.body_time);
    return async_discard({shared_from_this(), &stream_}, until);
  }
  if (!is_watching_) return wait_for_next();
  stream_.cancel();  // then waits for the next head
}

void Connection::wait_for_job() {
  last_event_ = answer_.after_event;
  subscription_ =
      answer_.job->subscribe([weak = weak_from_this(), executor = stream_.get_executor()] {
        net::post(executor, [weak] {
          if (const auto self = weak.lock()) self->on_job_changed();
        });
      });
  stream_.expires_never();
  watch_client();
  if (answer_.on_event) begin_stream();
  on_job_changed();
}

// Bytes that arrive meanwhile belong to the next request.
void Connection::watch_client() {
  if (is_watching_) return;
  is_watching_ = true;
  stream_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            self->is_watching_ = false;
                            self->buffer_.commit(bytes);
                            self->on_watched(error);
                          });
}

// At the end of the stream the client is gone, unless it has said that it will ask for no more:
// then it may have closed its own direction alone (RFC 9112, section 9.6).
void Connection::on_watched(error_code error) {
  if (is_answered_) {
    if (!is_writing_ && keeps_alive_) wait_for_next();
    return;
  }
  if (!error && buffer_.size() < kMostBytesAhead) return watch_client();
  if (error == net::error::eof && !may_go_on(parser_->get())) return watch_for_reset();
  leave();
}

void Connection::watch_for_reset() {
  is_watching_ = true;
  stream_.socket().async_wait(net::socket_base::wait_error,
                              [self = shared_from_this()](error_code error) {
                                self->is_watching_ = false;
                                if (!error && !self->is_answered_) self->leave();
                              });
}

// The client is gone.
void Connection::leave() {
  pings_.cancel();
  subscription_.reset();
  log(kClientLeft);
  if (answer_.when_gone) answer_.when_gone();
  answer_ = {};
  is_answered_ = true;
  keeps_alive_ = false;
  stream_.close();
}

void Connection::on_job_changed() {
  if (is_answered_ || is_writing_ || !answer_.job) return;
  if (is_streaming_) return send_events();
  if (is_final(answer_.job->status().state)) answer_end();
}

// Pictures as text are megabytes: other clients are served meanwhile.
void Connection::answer_end() {
  is_writing_ = true;
  subscription_.reset();
  answer_aside(shared_.aside.threads.get_executor(),
               [job = answer_.job, write = std::move(answer_.when_ended)] {
                 return answer_of_end(*job, write);
               });
}

void Connection::begin_stream() {
  is_streaming_ = true;
  keeps_alive_ = keeps_alive_ && parser_->get().version() == 11;
  send_piece(stream_head(request_.id, shared_.api.access().headers_for(request_), stream_end()));
}

// Sends all new events in one piece.
void Connection::send_events() {
  auto events = answer_.job->events_after(last_event_);
  if (num_picture_bytes(events) > kWrittenHere) return send_events_aside(std::move(events));
  if (!events.empty()) last_event_ = events.back().id;
  is_answered_ = has_last_event(events) || is_final_and_read();
  send_events_piece(stream_piece(events_text(events, answer_.on_event), stream_end()));
}

void Connection::send_events_aside(std::vector<Event> events) {
  is_writing_ = true;
  last_event_ = events.back().id;
  auto work = [events = std::move(events), write = std::move(answer_.on_event),
               end = stream_end()]() mutable {
    auto piece = stream_piece(events_text(events, write), end);
    return WrittenEvents{std::move(piece), std::move(write), has_last_event(events)};
  };
  do_aside(shared_.aside.threads.get_executor(), std::move(work), [this](WrittenEvents written) {
    is_writing_ = false;
    if (is_answered_) return;  // the client left meanwhile
    answer_.on_event = std::move(written.write);
    is_answered_ = written.is_over || is_final_and_read();
    send_events_piece(std::move(written.piece));
  });
}

void Connection::send_events_piece(std::string bytes) {
  if (!bytes.empty()) return send_piece(std::move(bytes));
  if (is_answered_) return end_stream();
  ping_later();
}

// A short piece must not keep the memory of a long one before it.
void Connection::send_piece(std::string bytes) {
  piece_.swap(bytes);
  is_writing_ = true;
  pings_.cancel();
  allow_time_to_write(piece_.size());
  net::async_write(stream_, net::buffer(piece_),
                   [self = shared_from_this()](error_code error, std::size_t bytes) {
                     self->is_writing_ = false;
                     if (!self->answer_.job) return;
                     self->bytes_sent_ += bytes;
                     if (error) return self->leave();
                     if (self->is_answered_) return self->end_stream();
                     self->on_job_changed();
                   });
}

void Connection::end_stream() {
  pings_.cancel();
  std::string(keeps_alive_ ? "0\r\n\r\n" : "").swap(piece_);
  keeps_alive_ = keeps_alive_ && !shared_.is_stopping;
  is_writing_ = true;
  stream_.expires_after(shared_.options.write_time);
  net::async_write(
      stream_, net::buffer(piece_),
      [self = shared_from_this()](error_code error, std::size_t) { self->end_answer(200, error); });
}

void Connection::ping_later() {
  pings_.set(shared_.options.ping_interval, [this] {
    if (!is_answered_ && !is_writing_) send_piece(stream_piece(": ping\n\n", stream_end()));
  });
}

void Connection::log(int status) {
  if (!shared_.options.log) return;
  shared_.options.log({.id = request_.id,
                       .method = request_.method,
                       .path = request_.path,
                       .client = request_.client_address,
                       .status = status,
                       .bytes = bytes_sent_,
                       .seconds = std::chrono::duration<double>(Clock::now() - began_).count()});
}

}  // namespace braid::serve
