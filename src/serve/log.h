// One line per event: time=... event=... name=value. Any thread may write.
#pragma once

#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <utility>

namespace braid::serve {

class Log {
 public:
  // `write` gets whole lines, line ends included.
  explicit Log(std::function<void(const std::string& line)> write) : write_(std::move(write)) {}

  using Field = std::pair<const char*, std::string>;
  // Fields without a value are left out.
  void operator()(const char* event, std::initializer_list<Field> fields);

 private:
  std::mutex mutex_;
  std::function<void(const std::string& line)> write_;
};

// Unchanged, or quoted, with whatever could end a line or a field escaped; long values are cut.
std::string log_value(const std::string& value);

}  // namespace braid::serve
