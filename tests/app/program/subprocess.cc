#include "subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "app/engine_main.h"

namespace braid {
namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    read_end = ends[0];
    write_end = ends[1];
  }
};

// What is written to the terminal is read from its other end.
Pipe make_terminal() {
  Pipe sides;
  ::close(sides.read_end);
  ::close(sides.write_end);
  EXPECT_EQ(::openpty(&sides.read_end, &sides.write_end, nullptr, nullptr, nullptr), 0);
  return sides;
}

}  // namespace

bool has_terminals() {
  int one = -1, other = -1;
  if (::openpty(&one, &other, nullptr, nullptr, nullptr) != 0) return false;
  ::close(one);
  ::close(other);
  return true;
}

namespace {

// A fork would lack LibTorch's threads, so the test itself computes nothing with it.
bool is_fork(const Invocation& start) {
  return start.launcher.empty() && start.environment.empty() && !start.from_shell;
}

std::vector<char*> arguments_of(const Invocation& start) {
  std::vector<char*> argv;
  const auto add = [&](const std::string& word) {
    argv.push_back(const_cast<char*>(word.c_str()));
  };
  for (const auto& word : start.launcher) add(word);
  static const std::string name = "braid", program = BRAID_PROGRAM;
  add(start.launcher.empty() ? name : program);
  for (const auto& argument : start.arguments) add(argument);
  argv.push_back(nullptr);
  return argv;
}

void become(const Invocation& start, const Pipe& out, const Pipe& err, const Pipe& in) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a crashing test leaves nothing running
  if (::chdir(start.folder.c_str()) != 0) ::_exit(126);
  ::dup2(in.read_end, STDIN_FILENO);
  ::dup2(err.write_end, STDERR_FILENO);
  const int file =
      start.out_file.empty() ? out.write_end : ::open(start.out_file.c_str(), O_WRONLY);
  ::dup2(file, STDOUT_FILENO);
  if (start.close_out) ::close(STDOUT_FILENO);
  if (start.largest_file) {
    const rlimit limit{rlim_t(*start.largest_file), rlim_t(*start.largest_file)};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  for (const auto& variable : start.environment) ::putenv(const_cast<char*>(variable.c_str()));
  auto argv = arguments_of(start);
  if (is_fork(start)) ::_exit(engine_main(int(argv.size()) - 1, argv.data()));
  ::execv(start.launcher.empty() ? BRAID_PROGRAM : argv.front(), argv.data());
  ::_exit(127);
}

// Appends what is available to `text`; false at the end.
bool take(int fd, std::string& text) {
  std::array<char, 4096> buffer{};
  const auto n = ::read(fd, buffer.data(), buffer.size());
  if (n <= 0) return false;
  text.append(buffer.data(), std::size_t(n));
  return true;
}

}  // namespace

Subprocess::Subprocess(const Invocation& start) {
  const Pipe out, in, err = start.on_terminal ? make_terminal() : Pipe();
  std::fflush(nullptr);  // else what this process has not written yet appears in the child's output
  pid_ = ::fork();
  if (pid_ == 0) become(start, out, err, in);
  for (const int fd : {out.write_end, err.write_end, in.read_end}) ::close(fd);
  out_ = out.read_end;
  err_ = err.read_end;
  const auto written = ::write(in.write_end, start.input.data(), start.input.size());
  EXPECT_EQ(written, ssize_t(start.input.size()));
  in_ = in.write_end;
  if (!start.keep_input_open) in_ = (::close(in_), -1);
}

Subprocess::~Subprocess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {in_, out_, err_})
    if (fd >= 0) ::close(fd);
}

bool Subprocess::read_some() {
  std::array<pollfd, 2> fds = {
      {{.fd = out_, .events = POLLIN, .revents = 0}, {.fd = err_, .events = POLLIN, .revents = 0}}};
  if (::poll(fds.data(), fds.size(), -1) < 0) return false;
  const bool out_is_open = fds[0].revents == 0 || take(out_, finished_.out);
  const bool err_is_open = fds[1].revents == 0 || take(err_, finished_.err);
  if (!out_is_open) out_ = (::close(out_), -1);  // poll ignores -1
  if (!err_is_open) err_ = (::close(err_), -1);
  return out_ >= 0 || err_ >= 0;
}

void Subprocess::wait_until_input_is_read() const {
  for (int left = 1; left > 0;) {
    pollfd input{.fd = in_, .events = 0, .revents = 0};
    ASSERT_EQ(::poll(&input, 1, 1), 0) << "the program has ended";
    ASSERT_EQ(::ioctl(in_, FIONREAD, &left), 0);
  }
}

bool Subprocess::wait_for(const std::string& text) {
  while (finished_.err.find(text) == std::string::npos)
    if (!read_some()) return false;
  return true;
}

void Subprocess::close_out() { out_ = (::close(out_), -1); }

void Subprocess::send(int signal) const { ::kill(pid_, signal); }

Finished Subprocess::finish() {
  while (read_some()) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  finished_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return finished_;
}

Finished Subprocess::finish_unread() {
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PID, id_t(pid_), &info, WEXITED | WNOWAIT), 0);
  return finish();
}

Finished run_braid(std::vector<std::string> arguments, const std::filesystem::path& folder) {
  return Subprocess({.arguments = std::move(arguments), .folder = folder}).finish();
}

Finished run_in_shell(const std::string& script, std::vector<std::string> arguments,
                      const std::filesystem::path& folder) {
  return Subprocess({.arguments = std::move(arguments),
                     .launcher = {"/bin/sh", "-c", script},
                     .folder = folder})
      .finish();
}

}  // namespace braid
