// What the connections of a server share.
#pragma once

#include <atomic>
#include <utility>  // Boost 1.74 uses std::exchange without it

#include <boost/asio.hpp>
#include <set>

#include "base/free_memory.h"
#include "serve/http/body_places.h"
#include "serve/http/http_server.h"

namespace braid::serve {

class Connection;

// Threads for what takes a while: parsing large bodies, decoding pictures, and writing answers with
// pictures as text. Pictures are decoded one at a time, because they take memory.
struct Aside {
  boost::asio::thread_pool threads{3};
  boost::asio::strand<boost::asio::thread_pool::executor_type> one_by_one{threads.get_executor()};
  boost::asio::thread_pool waiting{4};  // for other machines

  // Returns what a long body left in the heap to the system, behind the pictures that are decoded.
  void give_back_after(std::size_t body_bytes) {
    if (body_bytes >= kLongBody) boost::asio::post(one_by_one, give_back_free_memory);
  }
  static constexpr std::size_t kLongBody = 4 << 20;
};

// Only the server's thread uses it, except for the count.
struct Shared {
  const Api& api;
  const HttpServerOptions options;
  std::set<Connection*> connections = {};
  std::atomic<int> count = 0;
  Aside& aside;
  BodyPlaces places = {};
  bool is_stopping = false;
};

}  // namespace braid::serve
