// tools/hub/stand_in.py, running: a hub of models on loopback that has faults when told so.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "temporary_folder.h"

namespace braid::net {

class StandInHub {
 public:
  // `tls`: a file with certificate and key; empty: plain HTTP.
  explicit StandInHub(const std::filesystem::path& tls = {}) {
    std::array<int, 2> in{}, out{};
    EXPECT_EQ(::pipe2(in.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) become(in[0], out[1], tls);
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1];
    read_ports(out[0]);
    ::close(out[0]);
    scheme_ = tls.empty() ? "http" : "https";
  }
  StandInHub(const StandInHub&) = delete;
  StandInHub& operator=(const StandInHub&) = delete;
  ~StandInHub() {
    ::close(in_);  // it ends with its input
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  std::string endpoint() const { return scheme_ + "://127.0.0.1:" + std::to_string(hub_); }
  std::string network() const { return scheme_ + "://127.0.0.1:" + std::to_string(network_); }
  const std::filesystem::path& folder() const { return folder_.path(); }

  void put(const std::string& path, const std::string& contents) const {
    std::filesystem::create_directories((folder() / path).parent_path());
    write_file(folder() / path, contents);
  }
  void have_faults(const nlohmann::json& faults) const { put("faults.json", faults.dump()); }

  // What was asked for, in order.
  std::vector<nlohmann::json> requests() const {
    std::vector<nlohmann::json> all;
    if (!std::filesystem::exists(folder() / "requests.log")) return all;
    std::istringstream lines(read_file(folder() / "requests.log"));
    for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  void forget_requests() const { std::filesystem::remove(folder() / "requests.log"); }

 private:
  void become(int in, int out, const std::filesystem::path& tls) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    const std::string script = BRAID_SOURCE_DIR "/tools/hub/stand_in.py", folder = folder_.path();
    if (tls.empty())
      ::execlp("python3", "python3", "-B", script.c_str(), folder.c_str(), nullptr);
    else
      ::execlp("python3", "python3", "-B", script.c_str(), folder.c_str(), "--tls", tls.c_str(),
               nullptr);
    ::_exit(127);
  }
  void read_ports(int out) {
    std::string line;
    for (char c = 0; ::read(out, &c, 1) == 1 && c != '\n';) line += c;
    EXPECT_EQ(std::sscanf(line.c_str(), "hub=%d network=%d", &hub_, &network_), 2) << line;
  }

  const TemporaryFolder folder_;
  pid_t pid_ = -1;
  int in_ = -1, hub_ = 0, network_ = 0;
  std::string scheme_;
};

}  // namespace braid::net
