#include "app/print/standard_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <utility>

#include "wait_until.h"

namespace braid::standard_output_test {

// Standard output as a pipe that does not block, until destroyed.
class NonBlockingOutput {
 public:
  NonBlockingOutput() : before_(::dup(STDOUT_FILENO)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
    reader_ = ends[0];
  }
  NonBlockingOutput(const NonBlockingOutput&) = delete;
  NonBlockingOutput& operator=(const NonBlockingOutput&) = delete;
  ~NonBlockingOutput() {
    end();
    ::close(reader_);
  }

  int reader() const { return reader_; }
  void end() {
    if (before_ < 0) return;
    ::dup2(before_, STDOUT_FILENO);
    ::close(std::exchange(before_, -1));
  }

 private:
  int before_, reader_ = -1;
};

constexpr int kPipeBytes = 64 << 10;  // what a pipe holds (pipe(7))

int num_unread(int fd) {
  int count = 0;
  EXPECT_EQ(::ioctl(fd, FIONREAD, &count), 0);
  return count;
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; (n = ::read(fd, piece.data(), piece.size())) > 0;)
    text.append(piece.data(), std::size_t(n));
  return text;
}

TEST(Print, WaitsForTheReaderOfAPipeThatDoesNotBlock) {
  std::string picture(16 * kPipeBytes, 'x'), arrived;
  picture.front() = 'a';
  picture.back() = 'z';
  NonBlockingOutput output;
  std::jthread reader([&] {
    EXPECT_TRUE(wait_until([&] { return num_unread(output.reader()) == kPipeBytes; }));
    arrived = read_to_end(output.reader());
  });
  std::string failure;
  try {
    print(picture);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  output.end();
  reader.join();
  EXPECT_EQ(failure, "");
  EXPECT_TRUE(arrived == picture) << arrived.size();
}

}  // namespace braid::standard_output_test
