// Pages on disk: shared by content, and never trusted when incomplete.
#include "weights/paging/page_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "files.h"
#include "weights/paging/checksum.h"
#include "weights/paging/cpu_device.h"

namespace braid::page_file_test {

using testing::HasSubstr;
using namespace testing_files;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The values stand in the specification of xxHash.
TEST(Checksum, IsXxh64) {
  EXPECT_EQ(checksum(bytes_of("")), 0xEF46DB3751D8E999);
  EXPECT_EQ(checksum(bytes_of("abc")), 0x44BC2CF5AD770999);
  EXPECT_EQ(checksum(bytes_of("Nobody inspects the spammish repetition")), 0xFBCEA83C8A378BF1);
}

class PageFileTest : public testing::Test {
 protected:
  // A page with room for the header; contents are drawn from `seed`.
  static std::vector<std::byte> page(std::size_t contents, unsigned seed = 1) {
    std::vector<std::byte> bytes(PageFile::kHeader + contents);
    for (auto& byte : bytes) byte = std::byte((seed = seed * 1664525 + 1013904223) >> 24);
    return bytes;
  }
  fs::path only_file() const {
    std::vector<fs::path> pages;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.path().filename() != "damaged") pages.push_back(entry.path());
    EXPECT_EQ(pages.size(), 1u);
    return pages.front();
  }
  static std::string read(const PageFile& file, std::size_t size) {
    std::string contents(size, '\0');
    file.read(std::as_writable_bytes(std::span(contents)));
    return contents;
  }
  void flip(std::uint64_t offset) const { flip(only_file(), offset); }
  static void flip(const fs::path& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
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
  const auto file = pages_.put(bytes, id_of("int8"));
  const auto contents = read(*file, kSize);
  EXPECT_TRUE(std::ranges::equal(bytes_of(contents), std::span(bytes).subspan(PageFile::kHeader)));
}

TEST_F(PageFileTest, IsFoundByWhatItIsMadeOf) {
  auto bytes = page(8192);
  EXPECT_EQ(pages_.find(id_of("int8"), 8192), nullptr);
  pages_.put(bytes, id_of("int8"));
  EXPECT_NE(PageFolder(folder_.path()).find(id_of("int8"), 8192), nullptr);
  EXPECT_EQ(pages_.find(id_of("int8"), 4096), nullptr) << "another size";
  EXPECT_EQ(pages_.find(id_of("int8-v1"), 8192), nullptr) << "another recipe";
  only_file();
}

TEST_F(PageFileTest, ADamagedHeaderIsNotFound) {
  auto bytes = page(8192);
  pages_.put(bytes, id_of("x"));
  flip(40);
  EXPECT_EQ(pages_.find(id_of("x"), 8192), nullptr);
  pages_.put(bytes, id_of("x"));
  EXPECT_NE(pages_.find(id_of("x"), 8192), nullptr);
}

// A copy that stopped half way, or went on: it is made anew, and no request meets it.
TEST_F(PageFileTest, AFileOfAnotherSizeIsNotFound) {
  auto bytes = page(8192);
  constexpr std::uintmax_t kWhole = PageFile::kHeader + 8192;
  for (const std::uintmax_t size :
       {std::uintmax_t(0), std::uintmax_t(7), std::uintmax_t(PageFile::kHeader - 1),
        std::uintmax_t(PageFile::kHeader), kWhole - 4096, kWhole - 1, kWhole + 1, kWhole + 4096}) {
    pages_.put(bytes, id_of("x"));
    fs::resize_file(only_file(), size);
    EXPECT_EQ(pages_.find(id_of("x"), 8192), nullptr) << size;
  }
}

class WaysToRead : public PageFileTest, public testing::WithParamInterface<DiskReads> {
 protected:
  // Reads into aligned memory, like that of slots.
  static std::string read_whole(const PageFile& file, std::int64_t size) {
    const auto into = aligned_bytes(size);
    file.read(span_of(into));
    return {static_cast<const char*>(into.const_data_ptr()), std::size_t(size)};
  }
  PageFolder pages_{folder_.path(), GetParam()};
};

TEST_P(WaysToRead, GiveWhatWasWritten) {
  for (const auto size : {std::size_t(4096), kSize, kSize + 4096}) {
    auto bytes = page(size);
    const auto file = pages_.put(bytes, id_of(std::to_string(size)));
    const auto want = std::span(bytes).subspan(PageFile::kHeader);
    EXPECT_TRUE(std::ranges::equal(bytes_of(read_whole(*file, std::int64_t(size))), want));
    EXPECT_TRUE(std::ranges::equal(bytes_of(read(*file, size)), want)) << "at any address";
  }
}

TEST_P(WaysToRead, RefuseAFlippedBit) {
  auto bytes = page(kSize);
  for (const auto offset : {std::size_t(PageFile::kHeader), PageFile::kHeader + kSize / 2,
                            PageFile::kHeader + kSize - 1}) {
    const auto file = pages_.put(bytes, id_of("x"));
    flip(offset);
    EXPECT_THAT(message_of<std::exception>([&] { read_whole(*file, kSize); }),
                HasSubstr("is damaged"));
    EXPECT_EQ(pages_.find(id_of("x"), kSize), nullptr) << "it is made anew";
  }
}

// What damaged one has often damaged more, and each would end a run of its own.
TEST_P(WaysToRead, VerifyOlderPagesOnceOneWasDamaged) {
  auto bytes = page(kSize);
  const auto path_of = [&](const char* name) { return folder_ / (id_of(name).text() + ".page"); };
  const auto sound = pages_.put(bytes, id_of("sound"));
  const auto first = pages_.put(bytes, id_of("first"));
  (void)pages_.put(bytes, id_of("second"));
  for (const auto* const name : {"first", "second"})
    flip(path_of(name), PageFile::kHeader + kSize / 2);
  EXPECT_NE(pages_.find(id_of("second"), kSize), nullptr) << "nothing is known yet";
  EXPECT_ANY_THROW(read_whole(*first, kSize));
  const PageFolder next(folder_.path(), GetParam());
  EXPECT_EQ(next.find(id_of("first"), kSize), nullptr);
  EXPECT_EQ(next.find(id_of("second"), kSize), nullptr);
  EXPECT_FALSE(fs::exists(path_of("second")));
  EXPECT_NE(next.find(id_of("sound"), kSize), nullptr);
  flip(path_of("sound"), PageFile::kHeader);
  EXPECT_NE(next.find(id_of("sound"), kSize), nullptr) << "it is not verified a second time";
}

TEST_P(WaysToRead, RefuseAFileThatWasCutShort) {
  for (const auto left : {0, 4096, 5000, 4096 + (5 << 20)}) {
    auto bytes = page(kSize);
    const auto file = pages_.put(bytes, id_of("x"));
    fs::resize_file(only_file(), std::uintmax_t(left));
    EXPECT_THAT(message_of<std::exception>([&] { read_whole(*file, kSize); }),
                HasSubstr("cut short"))
        << left;
    EXPECT_EQ(pages_.find(id_of("x"), kSize), nullptr);
  }
}

std::string name_of(const testing::TestParamInfo<DiskReads>& info) {
  const char* const names[] = {"auto", "direct", "mapped"};
  return names[int(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Each, WaysToRead,
                         testing::Values(DiskReads::kAuto, DiskReads::kDirect, DiskReads::kMapped),
                         name_of);

// Limits the number of open files while it lives.
class MostOpenFiles {
 public:
  explicit MostOpenFiles(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~MostOpenFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  MostOpenFiles(const MostOpenFiles&) = delete;
  MostOpenFiles& operator=(const MostOpenFiles&) = delete;

 private:
  rlimit before_{};
};

TEST_F(PageFileTest, ThereMayBeMorePagesThanOpenFiles) {
  const MostOpenFiles few(64);
  auto bytes = page(4096);
  std::vector<std::shared_ptr<const PageFile>> files;
  for (int i = 0; i < 100; ++i) files.push_back(pages_.put(bytes, id_of(std::to_string(i))));
  for (int i = 0; i < 100; ++i) files.push_back(pages_.find(id_of(std::to_string(i)), 4096));
  for (const auto& file : files) {
    ASSERT_NE(file, nullptr);
    read(*file, 4096);
  }
}

TEST_F(PageFileTest, OneThatCannotBeOpenedIsNotTakenForMissing) {
  auto bytes = page(4096);
  pages_.put(bytes, id_of("x"));
  const MostOpenFiles none(0);
  EXPECT_THAT(message_of<std::exception>([&] { pages_.find(id_of("x"), 4096); }),
              HasSubstr("cannot read the page"));
  EXPECT_EQ(pages_.find(id_of("y"), 4096), nullptr);
}

// Neither reads nor writes it: both would wait forever.
TEST_F(PageFileTest, APipeOfItsNameIsASentence) {
  ASSERT_EQ(::mkfifo((folder_ / (id_of("x").text() + ".page")).c_str(), 0600), 0);
  EXPECT_THAT(message_of<std::exception>([&] { pages_.find(id_of("x"), 4096); }),
              HasSubstr("is not a file"));
}

TEST_F(PageFileTest, AnotherPageUnderItsNameIsRefused) {
  auto mine = page(8192), other = page(8192, 2);
  const auto file = pages_.put(mine, id_of("x"));
  const auto path = only_file();
  const TemporaryFolder elsewhere;
  PageFolder(elsewhere.path()).put(other, id_of("y"));
  fs::copy_file(fs::directory_iterator(elsewhere.path())->path(), path,
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(message_of<std::exception>([&] { PageFile(path, file->id(), 8192); }),
              HasSubstr("holds other weights"));
}

TEST_F(PageFileTest, SeveralMayWriteAtOnce) {
  std::vector<std::jthread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      auto bytes = page(1 << 20);
      read(*pages_.put(bytes, id_of("x")), 1 << 20);
    });
  writers.clear();
  only_file();
}

// Either nothing is left, or a complete file. Some of the delays end while it is written.
TEST_F(PageFileTest, AKillWhileWritingLeavesNoHalfPage) {
  auto bytes = page(64 << 20);
  for (int delay : {0, 3000, 10000, 30000}) {
    const auto child = ::fork();
    if (child == 0) {
      PageFolder(folder_.path()).put(bytes, id_of(std::to_string(delay)));
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
  read(*pages_.put(bytes, id_of("0")), 64 << 20);
}

TEST_F(PageFileTest, AFullDiskIsASentence) {
  auto bytes = page(kSize);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1 << 20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto sentence = message_of<std::exception>([&] { pages_.put(bytes, id_of("x")); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(sentence, HasSubstr("cannot write"));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

// A pipeline's folder is named in its constructor; its pages are read in calls.
TEST_F(PageFileTest, StaysWhereItWasWhenTheProcessMoves) {
  const auto before = fs::current_path();
  fs::current_path(folder_.path());
  auto bytes = page(1000);
  const PageFolder relative("pages");
  const auto file = relative.put(bytes, id_of("a page"));
  fs::current_path(before);
  EXPECT_EQ(read(*file, 1000),
            std::string(reinterpret_cast<const char*>(bytes.data()) + PageFile::kHeader, 1000));
  EXPECT_NE(relative.find(id_of("a page"), 1000), nullptr);
  EXPECT_TRUE(fs::exists(folder_ / "pages"));
}

}  // namespace braid::page_file_test
