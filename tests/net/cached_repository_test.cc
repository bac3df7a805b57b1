// The hub cache's layout on file systems without symbolic links, such as exFAT, the modes of its
// files, and folders that cannot be a cache.
#include "net/hub/cached_repository.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "net/hub/incomplete_blob.h"
#include "temporary_folder.h"

namespace braid::net::cached_repository_test {

namespace fs = std::filesystem;

const std::string kCommit = "c0ffee";
const HubFile kTokenizer{.path = "tokenizer/vocab.json", .size = 2, .etag = "same"},
    kProcessor{.path = "processor/vocab.json", .size = 2, .etag = "same"},
    kIndex{.path = "model_index.json", .size = 3, .etag = "other"};

class WithoutLinks : public testing::Test {
 protected:
  WithoutLinks() {
    repository_.prepare();
    write_file(repository_.blob(kTokenizer), "{}");
    write_file(repository_.blob(kIndex), "{ }");
  }
  std::string text_of_file(const HubFile& file) const {
    const auto path = repository_.snapshot(kCommit) / file.path;
    return fs::is_symlink(path) ? "a link" : read_file(path);
  }

  const TemporaryFolder cache_;
  const CachedRepository repository_{cache_.path(), "org/name", CachedRepository::Links::kNone};
};

TEST_F(WithoutLinks, FilesOfTheSameContentsAreAllThere) {
  repository_.publish({kTokenizer, kProcessor, kIndex}, kCommit);
  for (const auto& file : {kTokenizer, kProcessor}) EXPECT_EQ(text_of_file(file), "{}");
  EXPECT_EQ(text_of_file(kIndex), "{ }");
  for (const auto& file : {kTokenizer, kIndex}) EXPECT_FALSE(fs::exists(repository_.blob(file)));
  for (const auto& file : {kTokenizer, kProcessor, kIndex})
    EXPECT_EQ(repository_.contents(file, kCommit), repository_.snapshot(kCommit) / file.path);
}

TEST_F(WithoutLinks, AFileThatIsMissingIsCopiedFromItsTwin) {
  repository_.publish({kTokenizer, kIndex}, kCommit);
  EXPECT_TRUE(repository_.contents(kProcessor, kCommit).empty());
  repository_.publish({kTokenizer, kProcessor, kIndex}, kCommit);
  EXPECT_EQ(text_of_file(kProcessor), "{}");
  EXPECT_EQ(text_of_file(kTokenizer), "{}");
}

TEST_F(WithoutLinks, AFileWithoutContentsIsNotPublished) {
  const HubFile gone{.path = "vae/config.json", .size = 9, .etag = "gone"};
  EXPECT_THROW(repository_.publish({kIndex, gone}, kCommit), Error);
}

// Calls `work` on several threads at once, as often as it takes for them to meet.
void at_once(const std::function<void()>& work) {
  constexpr int kThreads = 4;
  std::barrier start(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      EXPECT_NO_THROW(work());
    });
}

// One that finds another's link must not take the blob away from other snapshots.
TEST(CachedRepository, IsPublishedBySeveralAtOnce) {
  const TemporaryFolder cache;
  const CachedRepository repository(cache.path(), "org/name");
  repository.prepare();
  write_file(repository.blob(kIndex), "{ }");
  repository.publish({kIndex}, "before");
  for (int i = 0; i < 300; ++i) {
    const auto commit = std::to_string(i);
    at_once([&] { repository.publish({kIndex}, commit); });
    ASSERT_TRUE(fs::exists(repository.blob(kIndex))) << commit;
    for (const auto& snapshot : {std::string("before"), commit}) {
      const auto path = repository.snapshot(snapshot) / kIndex.path;
      ASSERT_TRUE(fs::is_symlink(path) && read_file(path) == "{ }") << snapshot;
    }
  }
}

TEST(CachedRepository, IsCopiedBySeveralAtOnce) {
  const TemporaryFolder cache;
  const CachedRepository repository(cache.path(), "org/name", CachedRepository::Links::kNone);
  repository.prepare();
  const std::string contents(1 << 20, 'w');
  const HubFile weights{.path = "vae/model.safetensors", .size = contents.size(), .etag = "w"};
  for (int i = 0; i < 50; ++i) {
    const auto commit = std::to_string(i);
    write_file(repository.blob(weights), contents);
    at_once([&] { repository.publish({weights}, commit); });
    ASSERT_EQ(read_file(repository.snapshot(commit) / weights.path), contents) << commit;
    ASSERT_FALSE(fs::exists(repository.blob(weights)));
  }
}

// The umask of a test, restored after it.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

unsigned mode_of(const fs::path& path) { return unsigned(fs::status(path).permissions()); }

void take(const fs::path& lock) {
  const FileLock taken(lock, {}, [] {});
}

// huggingface_hub's: locks 0664 always, blobs as the umask has them.
TEST(ModesOfFiles, AreThoseOfTheHubsLibrary) {
  for (const mode_t mask : {0002, 0022, 0077}) {
    const TemporaryFolder folder;
    const Umask umask(mask);
    take(folder / "a.lock");
    EXPECT_EQ(mode_of(folder / "a.lock"), 0664u) << mask;
    const IncompleteBlob blob(folder / "a.incomplete", kIndex);
    EXPECT_EQ(mode_of(folder / "a.incomplete"), 0666u & ~mask) << mask;
  }
}

// Runs as a user without rights until destroyed; root alone can.
class AsNobody {
 public:
  AsNobody() {
    EXPECT_EQ(::setegid(kNobody), 0);
    EXPECT_EQ(::seteuid(kNobody), 0);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    EXPECT_EQ(::seteuid(0), 0);
    EXPECT_EQ(::setegid(0), 0);
  }

 private:
  static constexpr uid_t kNobody = 65534;
};

TEST(FileLock, IsTakenOnAFileOfAnotherUser) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can be another user";
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0755));
  for (const unsigned mode : {0666u, 0644u}) {
    const auto lock = folder / "a.lock";
    write_file(lock, "");
    fs::permissions(lock, fs::perms(mode));
    {
      const AsNobody nobody;
      std::error_code hidden;
      if (!fs::exists(lock, hidden)) GTEST_SKIP() << "temporary folders are root's alone";
      EXPECT_NO_THROW(take(lock)) << mode;
      EXPECT_THROW(take(folder / "b.lock"), Error) << "nobody may not create files there";
    }
    EXPECT_EQ(mode_of(lock), mode);
  }
}

// What the machine lacks is no fault of the folder.
TEST(CachedRepository, RefusesFoldersThatAreUnusable) {
  const TemporaryFolder folder;
  const auto kind_of_refusal = [](const fs::path& cache) -> std::string {
    try {
      CachedRepository(cache, "org/name", CachedRepository::Links::kSymbolic).prepare();
    } catch (const InputError& error) {
      return text_of("unusable: ", error.what());
    } catch (const Error& error) {
      return text_of("failed: ", error.what());
    }
    return "";
  };
  EXPECT_EQ(kind_of_refusal(folder / "new/cache"), "");
  write_file(folder / "file", "");
  for (const char* const cache : {"file", "file/cache", "/proc/no/folder"})
    EXPECT_TRUE(kind_of_refusal(folder / cache).starts_with("unusable: cannot create")) << cache;
  fs::create_directories(folder / "lock");
  EXPECT_THROW(FileLock(folder / "lock", {}, [] {}), InputError);
  const auto disk = folder / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "nr_inodes=1") != 0) GTEST_SKIP() << "needs root";
  const auto refusal = kind_of_refusal(disk / "cache");
  EXPECT_EQ(::umount(disk.c_str()), 0);
  EXPECT_TRUE(refusal.starts_with("failed: cannot create the folder")) << refusal;
}

}  // namespace braid::net::cached_repository_test
