// Pages on a disk: shared by contents, and never believed when they are not whole.
#include "weights/paging/page_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "files.h"
#include "weights/paging/checksum.h"

namespace braid {
namespace {

using testing::HasSubstr;
using namespace testing_files;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// From the specification of xxHash.
TEST(Checksum, IsXxh64) {
  EXPECT_EQ(checksum(bytes_of("")), 0xEF46DB3751D8E999);
  EXPECT_EQ(checksum(bytes_of("abc")), 0x44BC2CF5AD770999);
  EXPECT_EQ(checksum(bytes_of("Nobody inspects the spammish repetition")), 0xFBCEA83C8A378BF1);
}

class PageFileTest : public testing::Test {
 protected:
  // A page with room for the header; its contents are drawn from `seed`.
  static std::vector<std::byte> page(std::size_t contents, unsigned seed = 1) {
    std::vector<std::byte> bytes(PageFile::kHeader + contents);
    for (auto& byte : bytes) byte = std::byte((seed = seed * 1664525 + 1013904223) >> 24);
    return bytes;
  }
  fs::path only_file() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
    return fs::directory_iterator(folder_.path())->path();
  }
  static std::string read(const PageFile& file, std::size_t size) {
    std::string contents(size, '\0');
    file.read(std::as_writable_bytes(std::span(contents)));
    return contents;
  }
  void flip(std::uint64_t offset) const {
    std::fstream file(only_file(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(std::streamoff(offset));
    const char byte = char(file.get() ^ 4);
    file.seekp(std::streamoff(offset));
    file.put(byte);
  }
  static constexpr std::size_t kSize = 9 << 20;  // three parts
  TemporaryFolder folder_;
  PageFolder pages_{folder_.path()};
};

TEST_F(PageFileTest, ReadsWhatWasWritten) {
  auto bytes = page(kSize);
  const auto file = pages_.put(bytes, "int8");
  const auto contents = read(*file, kSize);
  EXPECT_TRUE(std::ranges::equal(bytes_of(contents), std::span(bytes).subspan(PageFile::kHeader)));
}

TEST_F(PageFileTest, IsSharedByEqualContentsOnly) {
  auto bytes = page(8192), again = page(8192), other = page(8192, 2);
  const auto first = pages_.put(bytes, "int8"), second = pages_.put(again, "int8");
  EXPECT_EQ(first->id(), second->id());
  only_file();
  EXPECT_NE(pages_.put(again, "int8-v1")->id(), first->id()) << "another recipe";
  EXPECT_NE(pages_.put(other, "int8")->id(), first->id()) << "other weights of the same layer";
}

TEST_F(PageFileTest, AFlippedBitIsRefusedThenMadeAnew) {
  auto bytes = page(kSize);
  for (const auto offset : {std::size_t(PageFile::kHeader), PageFile::kHeader + kSize / 2,
                            PageFile::kHeader + kSize - 1}) {
    const auto file = pages_.put(bytes, "x");
    flip(offset);
    EXPECT_THAT(message_of([&] { read(*file, kSize); }), HasSubstr("is damaged"));
    read(*pages_.put(bytes, "x"), kSize);
  }
}

TEST_F(PageFileTest, ADamagedHeaderIsMadeAnew) {
  auto bytes = page(8192);
  pages_.put(bytes, "x");
  flip(40);
  EXPECT_EQ(read(*pages_.put(bytes, "x"), 8192).size(), 8192u);
}

TEST_F(PageFileTest, ATruncatedFileIsMadeAnew) {
  auto bytes = page(8192);
  pages_.put(bytes, "x");
  fs::resize_file(only_file(), PageFile::kHeader + 5000);
  read(*pages_.put(bytes, "x"), 8192);
  const auto open = pages_.put(bytes, "x");
  fs::resize_file(only_file(), PageFile::kHeader + 5000);
  EXPECT_THAT(message_of([&] { read(*open, 8192); }), HasSubstr("cut short"));
}

TEST_F(PageFileTest, AnotherPageUnderItsNameIsRefused) {
  auto mine = page(8192), other = page(8192, 2);
  const auto file = pages_.put(mine, "x");
  const auto path = only_file();
  const TemporaryFolder elsewhere;
  PageFolder(elsewhere.path()).put(other, "x");
  fs::copy_file(fs::directory_iterator(elsewhere.path())->path(), path,
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(message_of([&] { PageFile(path, file->id(), 8192); }),
              HasSubstr("holds other weights"));
}

TEST_F(PageFileTest, SeveralMayWriteAtOnce) {
  std::vector<std::jthread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      auto bytes = page(1 << 20);
      read(*pages_.put(bytes, "x"), 1 << 20);
    });
  writers.clear();
  only_file();
}

// What is left is nothing, or whole.
TEST_F(PageFileTest, AKillWhileWritingLeavesNoHalfPage) {
  auto bytes = page(64 << 20);
  for (int delay : {0, 3000, 10000, 30000}) {
    const auto child = ::fork();
    if (child == 0) {
      PageFolder(folder_.path()).put(bytes, std::to_string(delay));
      ::_exit(0);
    }
    ::usleep(unsigned(delay));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      const bool is_page = entry.path().extension() == ".page";
      EXPECT_TRUE(!is_page || entry.file_size() == bytes.size());
    }
  }
  read(*pages_.put(bytes, "0"), 64 << 20);
}

TEST_F(PageFileTest, AFullDiskIsASentence) {
  auto bytes = page(kSize);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1 << 20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto sentence = message_of([&] { pages_.put(bytes, "x"); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(sentence, HasSubstr("cannot write"));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

}  // namespace
}  // namespace braid
