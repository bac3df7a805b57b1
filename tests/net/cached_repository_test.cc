// The hub cache's layout on file systems without symbolic links, such as exFAT, the modes of its
// files, and folders that cannot be a cache.
#include "net/hub/cached_repository.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

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
