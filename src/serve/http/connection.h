// One client's connection: reads heads and bodies and writes answers, one request after another. It
// belongs to the server's thread; work done aside gets copies, and its result comes back.
#pragma once

#include <exception>

#include "serve/http/alarm.h"
#include "serve/http/boost_messages.h"
#include "serve/http/endpoints.h"
#include "serve/http/event_stream.h"
#include "serve/http/head_reader.h"
#include "serve/http/shared.h"

namespace braid::serve {

using tcp = net::ip::tcp;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, Shared& shared)
      : stream_(std::move(socket)),
        limit_(stream_),
        pings_(stream_.get_executor()),
        shared_(shared) {
    shared_.connections.insert(this);
    ++shared_.count;
  }
  ~Connection() {
    release_places();
    shared_.connections.erase(this);
    --shared_.count;
  }

  void start() { read_head(); }
  // Answers without reading.
  void refuse_for_load();
  void close_if_idle() {
    if (is_idle_) stream_.cancel();
    rests_since_.reset();
  }
  // Ends what another machine does for it.
  void stop_waiting() {
    if (waits_elsewhere_ && answer_.when_gone) answer_.when_gone();
  }
  // When it began to wait for a request, whose head has not come; nothing otherwise.
  std::optional<Clock::time_point> rests_since() const { return rests_since_; }

 private:
  void wait_for_next();
  void read_head();
  void begin_request() {
    error_code unknown;
    request_ = {};
    request_.id = random_id();
    request_.client_address = address_text(stream_.socket().remote_endpoint(unknown));
    request_.server_address = address_text(stream_.socket().local_endpoint(unknown));
  }
  void on_head(error_code error);
  void on_cut_head(error_code error);
  bool claim_places();
  void release_places() { shared_.places.release(std::exchange(places_, {})); }
  void read_body();
  void on_body(error_code error);
  void fail(const ApiError& error);
  void fail_late(const ApiError& error);
  void refuse(const ApiError& error);
  void dispatch();
  // Does `work` on another thread, then calls `then` with its result in the server's thread, to
  // which connections belong, also their ends. What `work` throws closes this one.
  template <class Work, class Then>
  void do_aside(const net::any_io_executor& aside, Work work, Then then);
  void answer_aside(const net::any_io_executor& aside, std::function<Answer()> work);
  void answer_with(Answer answer);
  void wait_elsewhere(Answer answer);
  void finish_on(const net::any_io_executor& aside, std::function<Answer()> work);
  void send(HttpResponse response);
  void allow_time_to_write(std::size_t bytes);
  void end_answer(int status, error_code error);
  void after_answer();
  void wait_for_job();
  void watch_client();
  void on_watched(error_code error);
  void watch_for_reset();
  void leave();
  void on_job_changed();
  void answer_end();
  void begin_stream();
  void send_events();
  void send_events_aside(std::vector<Event> events);
  void send_events_piece(std::string bytes);
  void send_piece(std::string bytes);
  // Whether the client already knew the last event.
  bool is_final_and_read() const {
    return is_final(answer_.job->status().state) && answer_.job->events_after(last_event_).empty();
  }
  StreamEnd stream_end() const {
    return keeps_alive_ ? StreamEnd::kEmptyChunk : StreamEnd::kClosing;
  }
  void end_stream();
  void ping_later();
  void log(int status);
  auto bound(void (Connection::*then)(error_code)) {
    return [self = shared_from_this(), then](error_code error, std::size_t = 0) {
      (self.get()->*then)(error);
    };
  }

  Stream stream_;
  ReadLimit limit_;
  Alarm pings_;
  Shared& shared_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;
  Answer answer_;
  std::optional<BoostResponse> response_;
  std::string piece_;  // being written
  std::shared_ptr<void> subscription_;
  Clock::time_point began_;
  std::optional<Clock::time_point> lingers_until_, rests_since_;
  std::size_t body_bytes_ = 0, bytes_sent_ = 0;
  std::uint64_t last_event_ = 0;
  BodyPlaces::Held places_;
  bool is_idle_ = false, keeps_alive_ = false, is_streaming_ = false, has_unread_body_ = false;
  bool waits_elsewhere_ = false;
  bool is_watching_ = false, is_answered_ = false, is_writing_ = false;  // or made aside
};

template <class Work, class Then>
void Connection::do_aside(const net::any_io_executor& aside, Work work, Then then) {
  net::post(
      aside, [self = shared_from_this(), work = std::move(work), then = std::move(then)]() mutable {
        const auto here = self->stream_.get_executor();
        try {
          auto result = work();
          net::post(here, [self = std::move(self), then = std::move(then),
                           result = std::move(result)]() mutable { then(std::move(result)); });
        } catch (...) {
          net::post(here, [self = std::move(self), failure = std::current_exception()] {
            self->stream_.close();
            std::rethrow_exception(failure);
          });
        }
      });
}

}  // namespace braid::serve
