// Certificates and variables for tests of HTTPS.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace braid::net {

// A variable that is set for as long as this lives.
class SetVariable {
 public:
  SetVariable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;
  ~SetVariable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

// A certificate that signs itself (only.pem), and the returned file with its key.
inline std::filesystem::path made_certificate(const std::filesystem::path& folder,
                                              const std::string& names) {
  const auto key = folder / "key.pem", only = folder / "only.pem", both = folder / "both.pem";
  const auto command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
      "/CN=stand-in -addext subjectAltName=" +
      names + " -keyout " + key.string() + " -out " + only.string() + " 2>/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  write_file(both, read_file(only) + read_file(key));
  return both;
}

}  // namespace braid::net
