// A chat server on loopback, with OpenAI's protocol, that answers what a test wants.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "net/asked_over_http.h"

namespace braid::net {

class StandInChat {
 public:
  using Asked = AskedOverHttp;
  struct Reply {
    int status = 200;
    std::string body = {};
    std::string headers = {};  // whole lines
    bool is_held = false;      // until the test ends
    bool is_cut = false;       // half of the body, and the end
  };
  using Answer = std::function<Reply(const Asked&)>;

  explicit StandInChat(const std::string& content = "a fox in the snow, photograph")
      : StandInChat([content](const Asked&) { return completion(content); }) {}
  // `answer` is for chat completions; the list of models names "stand-in".
  explicit StandInChat(Answer answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~StandInChat() {
    {
      const std::scoped_lock lock(mutex_);
      is_over_ = true;
      changed_.notify_all();
    }
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (auto& talk : talks_) talk.join();
    ::close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // The questions, without the list of models.
  std::vector<Asked> questions() {
    auto asked = all();
    std::erase_if(asked, [](const Asked& one) { return one.method != "POST"; });
    return asked;
  }
  std::vector<Asked> all() {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }
  void wait_for_questions(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_.size() >= count; });
  }

  static Reply completion(const std::string& content, const std::string& finish = "stop") {
    return {.body = nlohmann::json(
                        {{"choices",
                          nlohmann::json::array(
                              {{{"index", 0},
                                {"finish_reason", finish},
                                {"message", {{"role", "assistant"}, {"content", content}}}}})}})
                        .dump()};
  }

 private:
  void accept_all() {
    for (;;) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      talks_.emplace_back([this, socket] {
        talk(socket);
        ::close(socket);
      });
    }
  }
  // One request for each connection.
  void talk(int socket) {
    if (const auto asked = read_request(socket)) send(socket, reply_to(*asked));
  }
  Reply reply_to(const Asked& asked) {
    {
      const std::scoped_lock lock(mutex_);
      asked_.push_back(asked);
      changed_.notify_all();
    }
    if (asked.method == "GET" && asked.path == "/v1/models")
      return {.body = R"({"object": "list", "data": [{"id": "stand-in"}, {"id": "other"}]})"};
    return answer_(asked);
  }
  void send(int socket, const Reply& reply) {
    if (reply.is_held) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_over_; });
      return;
    }
    auto text =
        "HTTP/1.1 " + std::to_string(reply.status) + " Said\r\nconnection: close\r\n" +
        "content-type: application/json\r\ncontent-length: " + std::to_string(reply.body.size()) +
        "\r\n" + reply.headers + "\r\n" + reply.body;
    if (reply.is_cut) text.resize(text.size() - reply.body.size() / 2);
    for (std::size_t sent = 0; sent < text.size();) {
      const auto n = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += std::size_t(n);
    }
  }

  const Answer answer_;
  int listener_ = -1, port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::vector<Asked> asked_;
  std::list<std::thread> talks_;
  std::thread thread_;
};

}  // namespace braid::net
