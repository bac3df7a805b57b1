// The store at the one address that all ranks know, where each tells the others where it listens.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "comm/launch.h"

namespace braid {

// What a wait or a failure to meet is about, for a sentence.
std::string place_text(const Launch& launch);

class Meeting {
 public:
  // Within `patience`, or throws Error. `launch` should live as long.
  Meeting(const Launch& launch, std::chrono::milliseconds patience);

  void tell(const std::string& what, const std::string& text);
  // Waits for what `rank` tells, until the end of the meeting. Throws Error.
  std::string ask(const std::string& what, int rank);
  // What is no longer there, or a store that is not, does not matter to ranks that have met.
  void forget(const std::string& what) noexcept;
  std::chrono::steady_clock::time_point end() const { return end_; }
  std::chrono::milliseconds left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end_ -
                                                                 std::chrono::steady_clock::now());
  }
  c10::intrusive_ptr<c10d::TCPStore> store() const { return store_; }

 private:
  [[noreturn]] void fail(const std::string& why, const std::string& variable) const;
  void check_address() const;
  void check_own_place() const;
  void wait_for_server() const;
  void open_store();

  const Launch& launch_;
  std::chrono::steady_clock::time_point end_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace braid
