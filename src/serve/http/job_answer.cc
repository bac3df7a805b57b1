// A connection while its job runs: it waits for the end or sends events, and notices when the
// client leaves.
#include <algorithm>
#include <array>
#include <charconv>

#include "serve/http/connection.h"

namespace braid::serve {
namespace {

constexpr std::size_t kMostBytesAhead = 64 << 10;  // sent by a client before it has its answer
constexpr std::size_t kWrittenHere = 64 << 10;     // bytes of pictures

bool is_end(const Event& event) {
  return event.name == "done" || event.name == "failed" || event.name == "cancelled";
}

std::size_t num_picture_bytes(const std::vector<Event>& events) {
  std::size_t bytes = 0;
  for (const auto& event : events)
    if (event.file) bytes += event.file->size();
  return bytes;
}

std::string written(const std::vector<Event>& events,
                    const std::function<std::string(const Event&)>& write) {
  std::string text;
  for (const auto& event : events) text += write(event);
  return text;
}

// An empty one would end the stream.
std::string chunk_of(std::string text, bool is_chunked) {
  if (!is_chunked || text.empty()) return text;
  std::array<char, 20> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), text.size(), 16).ptr;
  return std::move(text.insert(0, std::string(size.data(), end) + "\r\n").append("\r\n"));
}

}  // namespace

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
  if (error == net::error::eof && !parser_->get().keep_alive()) return watch_for_reset();
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
  timer_.cancel();
  subscription_.reset();
  log(499);  // nginx's code for this
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
               [this, job = answer_.job, write = std::move(answer_.when_ended)] {
                 return shared_.api.finish([&] { return Answer{.now = write(*job)}; });
               });
}

void Connection::begin_stream() {
  is_streaming_ = true;
  keeps_alive_ = keeps_alive_ && parser_->get().version() == 11;
  std::string head = std::string("HTTP/1.1 200 OK\r\ncontent-type: ") + kEventStream + "\r\n";
  head += "cache-control: no-store\r\nx-accel-buffering: no\r\nx-content-type-options: nosniff\r\n";
  head += "x-request-id: " + request_.id + "\r\n";
  for (const auto& [name, value] : shared_.api.access().headers_for(request_))
    head += name + ": " + value + "\r\n";
  head += keeps_alive_ ? "transfer-encoding: chunked\r\n\r\n" : "connection: close\r\n\r\n";
  send_piece(std::move(head));
}

// Sends all new events in one piece.
void Connection::send_events() {
  auto events = answer_.job->events_after(last_event_);
  if (num_picture_bytes(events) > kWrittenHere) return send_events_aside(std::move(events));
  if (!events.empty()) last_event_ = events.back().id;
  is_answered_ = std::any_of(events.begin(), events.end(), is_end) || is_final_and_read();
  send_events_piece(chunk_of(written(events, answer_.on_event), keeps_alive_));
}

// The one who writes events remembers earlier ones, so it goes along.
void Connection::send_events_aside(std::vector<Event> events) {
  is_writing_ = true;
  last_event_ = events.back().id;
  net::post(shared_.aside.threads,
            [self = shared_from_this(), events = std::move(events),
             write = std::move(answer_.on_event), is_chunked = keeps_alive_]() mutable {
              auto piece = chunk_of(written(events, write), is_chunked);
              const bool is_over = std::any_of(events.begin(), events.end(), is_end);
              const auto here = self->stream_.get_executor();
              net::post(here, [self = std::move(self), piece = std::move(piece),
                               write = std::move(write), is_over]() mutable {
                self->is_writing_ = false;
                if (self->is_answered_) return;  // the client left meanwhile
                self->answer_.on_event = std::move(write);
                self->is_answered_ = is_over || self->is_final_and_read();
                self->send_events_piece(std::move(piece));
              });
            });
}

void Connection::send_events_piece(std::string bytes) {
  if (!bytes.empty()) return send_piece(std::move(bytes));
  if (is_answered_) return end_stream();
  ping_later();
}

// Whether the client already knew the last event.
bool Connection::is_final_and_read() const {
  return is_final(answer_.job->status().state) && answer_.job->events_after(last_event_).empty();
}

// A short piece must not keep the memory of a long one before it.
void Connection::send_piece(std::string bytes) {
  piece_.swap(bytes);
  bytes_sent_ += piece_.size();
  is_writing_ = true;
  timer_.cancel();
  allow_time_to_write(piece_.size());
  net::async_write(stream_, net::buffer(piece_),
                   [self = shared_from_this()](error_code error, std::size_t) {
                     self->is_writing_ = false;
                     if (!self->answer_.job) return;
                     if (error && !self->is_answered_) return self->leave();
                     if (error) return;
                     if (self->is_answered_) return self->end_stream();
                     self->on_job_changed();
                   });
}

void Connection::end_stream() {
  std::string(keeps_alive_ ? "0\r\n\r\n" : "").swap(piece_);
  keeps_alive_ = keeps_alive_ && !shared_.is_stopping;
  is_writing_ = true;
  stream_.expires_after(shared_.options.write_time);
  net::async_write(stream_, net::buffer(piece_),
                   [self = shared_from_this()](error_code error, std::size_t) {
                     self->is_writing_ = false;
                     self->log(200);
                     if (!error) self->after_answer();
                   });
}

void Connection::ping_later() {
  timer_.expires_after(shared_.options.ping_interval);
  timer_.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (error || !self || self->is_answered_ || self->is_writing_) return;
    self->send_piece(chunk_of(": ping\n\n", self->keeps_alive_));
  });
}

void Connection::log(int status) {
  if (!shared_.options.log || request_.method.empty()) return;
  shared_.options.log({.id = request_.id,
                       .method = request_.method,
                       .path = request_.path,
                       .client = request_.client_address,
                       .status = status,
                       .bytes = bytes_sent_,
                       .seconds = std::chrono::duration<double>(Clock::now() - began_).count()});
}

}  // namespace braid::serve
