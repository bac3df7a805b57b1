// The hub cache's layout on file systems without symbolic links, such as exFAT.
#include "net/hub/cached_repository.h"

#include <gtest/gtest.h>

#include "base/file.h"
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

}  // namespace braid::net::cached_repository_test
