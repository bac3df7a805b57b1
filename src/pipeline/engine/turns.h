// Who may use a loaded model: one call at a time, in the process that loaded it.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/error.h"

namespace braid {

class Turns {
 public:
  // `thing` is what sentences call the model's owner: "pipeline".
  explicit Turns(const char* thing);

  // A call's turn; the next call begins when it ends.
  class Turn {
   public:
    explicit Turn(const Turns& of) : of_(of) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const Turns& of_;
  };

  // Waits for the calls before this one. Throws Cancelled if `stop` ends the wait, and Error where
  // it would never end: in a callback of the call whose turn it is, and in a child of fork().
  [[nodiscard]] Turn take(const std::stop_token& stop) const;

  // False in a child of fork(), which has none of the threads that work for its parent.
  bool is_here() const;

 private:
  const char* thing_;
  pid_t process_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any ended_;
  mutable std::optional<std::thread::id> taken_by_;
};

// The state behind a public class. Throws Error for an object that was moved from.
template <class State>
const State& held(const std::unique_ptr<State>& state, const char* thing) {
  check(state != nullptr, "this ", thing, " was moved from: it holds no model");
  return *state;
}

// Ends it where it was made. In a child of fork() it stays as it is: its end would wait for threads
// that are not there.
template <class State>
void end_where_made(std::unique_ptr<State>& state) {
  if (state && !state->is_here()) static_cast<void>(state.release());
}

// Moves `other` to `state`, whose old one ends likewise.
template <class State>
void replace_where_made(std::unique_ptr<State>& state, std::unique_ptr<State>& other) {
  if (&state == &other) return;
  end_where_made(state);
  state = std::move(other);
}

}  // namespace braid
