// One line for each thing that happened: time=... event=... name=value. Any thread may write.
#pragma once

#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <utility>

namespace braid::serve {

class Log {
 public:
  // `write` gets whole lines with their ends.
  explicit Log(std::function<void(const std::string& line)> write) : write_(std::move(write)) {}

  using Field = std::pair<const char*, std::string>;
  // Fields without a value are left out.
  void operator()(const char* event, std::initializer_list<Field> fields);

 private:
  std::mutex mutex_;
  std::function<void(const std::string& line)> write_;
};

// As it is, or in quotes with what could end a line or a field escaped; long ones are cut.
std::string log_value(const std::string& value);

}  // namespace braid::serve
