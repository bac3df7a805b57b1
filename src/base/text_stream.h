// Streams that write and read numbers alike everywhere: a program that uses the library may have
// set a locale of its own for the whole process, with which 16384 is written as 16.384.
#pragma once

#include <locale>
#include <sstream>

namespace braid {

class TextWriter : public std::ostringstream {
 public:
  TextWriter() { imbue(std::locale::classic()); }
};

class TextReader : public std::istringstream {
 public:
  explicit TextReader(const std::string& text) : std::istringstream(text) {
    imbue(std::locale::classic());
  }
};

}  // namespace braid
