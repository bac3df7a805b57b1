// Names and folders of Hugging Face's cache, laid out as huggingface_hub does.
#include "base/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "base/cache_folder.h"
#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::hub_cache_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const std::string kFirst = "3de623fc3c33e44ffbe2bad470d0f45bccf2eb21";
const std::string kSecond = "3de6aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

// The environment of a test, restored after it.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& set) {
    for (const char* const name :
         {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"}) {
      const auto* const old = std::getenv(name);
      if (old) before_[name] = old;
      ::unsetenv(name);
      names_.emplace_back(name);
    }
    for (const auto& [name, value] : set) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const auto& name : names_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> before_;
};

class HubCache : public testing::Test {
 protected:
  HubCache() {
    for (const auto& commit : {kFirst, kSecond}) fs::create_directories(snapshot(commit));
    fs::create_directories(repository() / "refs/pr");
    write_file(repository() / "refs/main", kFirst);
    write_file(repository() / "refs/pr/7", kSecond + "\n");
    write_file(snapshot(kFirst) / "a.gguf", "");
  }
  fs::path repository() const { return folder_ / "models--org--A-1.dev"; }
  fs::path snapshot(const std::string& commit) const { return repository() / "snapshots" / commit; }
  fs::path found(const std::string& name) const {
    const auto parsed = hub_name(name);
    return parsed ? find_in_hub(*parsed, folder_.path()) : fs::path("no name");
  }
  std::string refusal(const std::string& name) const {
    return message_of([&] { (void)found(name); });
  }
  const TemporaryFolder folder_;
};

TEST_F(HubCache, HasTheModelOfAName) {
  EXPECT_EQ(found("org/A-1.dev"), snapshot(kFirst));
  EXPECT_EQ(found("org/A-1.dev@main"), snapshot(kFirst));
  EXPECT_EQ(found("org/A-1.dev@pr/7"), snapshot(kSecond));
  EXPECT_EQ(found("org/A-1.dev@" + kSecond), snapshot(kSecond));
  EXPECT_EQ(found("org/A-1.dev@3de623f"), snapshot(kFirst));
  EXPECT_EQ(found("org/A-1.dev/a.gguf"), snapshot(kFirst) / "a.gguf");
  EXPECT_EQ(found("org/other"), "");
}

TEST_F(HubCache, NamesTheRevisionsThatItHas) {
  EXPECT_THAT(refusal("org/A-1.dev@v2"), AllOf(HasSubstr("no revision v2"), HasSubstr(kFirst)));
  EXPECT_THAT(refusal("org/A-1.dev@3de6"), HasSubstr("no revision 3de6")) << "two begin so";
  EXPECT_THAT(refusal("org/A-1.dev/b.gguf"), HasSubstr("has no b.gguf"));
  fs::remove_all(snapshot(kFirst));
  EXPECT_THAT(refusal("org/A-1.dev"),
              AllOf(HasSubstr("not downloaded"), HasSubstr(kFirst), HasSubstr(kSecond)));
  fs::remove(repository() / "refs/main");
  EXPECT_EQ(found("org/A-1.dev"), snapshot(kSecond)) << "the only one";
}

// The command that a refusal names loads what was asked for.
TEST_F(HubCache, SaysHowWhatIsMissingIsLoaded) {
  for (const std::string name :
       {"org/A-1.dev@v2", "org/A-1.dev/a.gguf@v2", "org/A-1.dev/b.gguf", "org/A-1.dev/b.gguf@pr/7"})
    EXPECT_THAT(refusal(name), HasSubstr("'braid pull " + name + "' loads it")) << name;
  fs::remove_all(snapshot(kSecond));
  EXPECT_THAT(refusal("org/A-1.dev@pr/7"), HasSubstr("'braid pull org/A-1.dev@pr/7' loads them"));
}

// huggingface_hub finds no snapshot under an empty ref either, and asks the hub.
TEST_F(HubCache, SaysThatARefIsEmpty) {
  for (const char* const blank : {"", "\n", " \n"}) {
    write_file(repository() / "refs/main", blank);
    EXPECT_THAT(
        refusal("org/A-1.dev"),
        AllOf(HasSubstr("no revision main: its refs/main is empty, as a killed download leaves it"),
              HasSubstr(kFirst), HasSubstr("'braid pull org/A-1.dev' loads it")));
  }
  write_file(repository() / "refs/v2", "");
  EXPECT_THAT(refusal("org/A-1.dev@v2"), HasSubstr("its refs/v2 is empty"));
  EXPECT_EQ(found("org/A-1.dev@3de623f"), snapshot(kFirst)) << "a commit needs no ref";
  fs::remove_all(snapshot(kSecond));
  EXPECT_EQ(found("org/A-1.dev"), snapshot(kFirst)) << "the only one";
}

TEST_F(HubCache, ListsItsRevisions) {
  const fs::path only = folder_ / "models--org--B" / "snapshots" / kSecond;
  fs::create_directories(only);
  fs::create_directories(folder_ / "datasets--org--C" / "snapshots" / kFirst);
  std::map<std::string, fs::path> found;
  for (const auto& revision : revisions_in_hub(folder_.path()))
    found[revision.name] = revision.snapshot;
  EXPECT_EQ(found, (std::map<std::string, fs::path>{{"org/A-1.dev", snapshot(kFirst)},
                                                    {"org/A-1.dev@pr/7", snapshot(kSecond)},
                                                    {"org/B", only}}));
  for (const auto& [name, path] : found) EXPECT_EQ(this->found(name), path);
  EXPECT_TRUE(revisions_in_hub(folder_ / "nowhere").empty());
}

TEST_F(HubCache, ListsWhatCannotBeRead) {
  fs::create_directory_symlink("models--org--loop", folder_ / "models--org--loop");
  write_file(folder_ / "models--org--file", "");
  std::map<std::string, std::string> unlisted;
  for (const auto& revision : revisions_in_hub(folder_.path()))
    if (!revision.unlisted.empty()) unlisted[revision.name] = revision.unlisted;
  ASSERT_EQ(unlisted.size(), 1u);
  EXPECT_THAT(unlisted["org/loop"], AllOf(HasSubstr((folder_ / "models--org--loop").string()),
                                          HasSubstr("Too many levels of symbolic links")));
  EXPECT_EQ(why_unlisted(folder_.path()), "");
  EXPECT_EQ(why_unlisted(folder_ / "nowhere"), "");
  EXPECT_THAT(why_unlisted(folder_ / "models--org--loop"), HasSubstr("cannot be read: Too many"));
}

// Addresses as browsers show and copy them.
TEST(HubAddresses, AreOfModels) {
  const std::map<std::string, std::string> kNames = {
      {"https://huggingface.co/org/m", "org/m"},
      {"http://www.huggingface.co/org/m/", "org/m"},
      {"hf.co/org/m", "org/m"},
      {"huggingface.co/org/m?library=diffusers#usage", "org/m"},
      {"https://hf-mirror.com/org/m", "org/m"},
      {"https://huggingface.co/org/m/tree/main", "org/m"},
      {"https://huggingface.co/org/m/tree/main/transformer", "org/m/transformer"},
      {"https://huggingface.co/org/m/tree/v2", "org/m@v2"},
      {"https://huggingface.co/org/m/tree/refs%2Fpr%2F1", "org/m@refs/pr/1"},
      {"https://huggingface.co/org/m/blob/main/a%20b.gguf", "org/m/a b.gguf"},
      {"https://huggingface.co/org/m/resolve/v2/x/a.gguf?download=true", "org/m/x/a.gguf@v2"},
      {"https://huggingface.co/org/m/discussions/3", "org/m"}};
  const std::map<std::string, std::string> set = {{"HF_HUB_CACHE", "/nowhere"}};
  const Variables nowhere(set);
  for (const auto& [address, name] : kNames) {
    EXPECT_FALSE(hub_name(address)) << address;
    ASSERT_TRUE(hub_name_of_address(address)) << address;
    EXPECT_EQ(not_in_hub(address), ", which is an address: its name here is " + name +
                                       ", and 'braid pull " + name + "' loads it");
  }
  for (const char* const other :
       {"https://huggingface.co/org", "https://huggingface.co/datasets/org/m", "org/m",
        "https://civitai.com/models/1", "https://huggingface.co.evil/org/m", "hf.co/", ""})
    EXPECT_FALSE(hub_name_of_address(other)) << other;
  EXPECT_THAT(not_in_hub("https://civitai.com/models/1"), HasSubstr("download what is there"));
  EXPECT_THAT(not_in_hub("org/m/"), HasSubstr("'braid pull org/m' loads it"));
  EXPECT_EQ(not_in_hub("models/x/y.gguf/../z"), "");
}

TEST_F(HubCache, HasTheModelOfAnAddress) {
  const std::map<std::string, std::string> set = {{"HF_HUB_CACHE", folder_.path().string()}};
  const Variables here(set);
  EXPECT_EQ(not_in_hub("https://huggingface.co/org/A-1.dev/tree/main"),
            ", which is an address: its name here is org/A-1.dev, as Hugging Face's cache has it");
}

TEST_F(HubCache, PathsAreNoNames) {
  for (const char* const path :
       {"model", "/org/name", "./a/b", "../a", "a/../b", "org/name/../../x", "a b/c", "org/", "",
        "org/name@", "org/name@../x", "org/name@/x"})
    EXPECT_FALSE(hub_name(path)) << path;
}

TEST_F(HubCache, AboveASnapshotLiesItsModel) {
  EXPECT_EQ(snapshot_of(repository()), snapshot(kFirst));
  EXPECT_EQ(snapshot_of(repository() / ""), snapshot(kFirst));
  EXPECT_EQ(snapshot_of(repository() / "snapshots"), snapshot(kFirst));
  for (const auto& other : {snapshot(kSecond), folder_.path(), snapshot(kFirst) / "a.gguf"})
    EXPECT_EQ(snapshot_of(other), other);
  fs::create_directories(folder_ / "models--none");
  EXPECT_EQ(snapshot_of(folder_ / "models--none"), folder_ / "models--none");
}

// The order of huggingface_hub's constants.py.
TEST_F(HubCache, IsWhereTheEnvironmentSays) {
  std::map<std::string, std::string> set = {{"HOME", "/home/u"}};
  const auto expect = [&](const char* where) {
    const Variables variables(set);
    EXPECT_EQ(hub_cache(), where);
  };
  expect("/home/u/.cache/huggingface/hub");
  set["XDG_CACHE_HOME"] = "/x";
  expect("/x/huggingface/hub");
  set["HF_HOME"] = "~/h";
  expect("/home/u/h/hub");
  set["HUGGINGFACE_HUB_CACHE"] = "/old";
  expect("/old");
  set["HF_HUB_CACHE"] = "/new";
  expect("/new");
}

// A service has no HOME: the library asks the password file then.
TEST_F(HubCache, IsInTheHomeOfThePasswordFileWithoutAnotherOne) {
  const auto* const entry = ::getpwuid(::getuid());
  if (!entry) GTEST_SKIP() << "this user has no entry in the password file";
  const auto home = fs::path(entry->pw_dir);
  const Variables variables({});
  EXPECT_EQ(home_folder(), entry->pw_dir);
  EXPECT_EQ(hub_cache(), home / ".cache/huggingface/hub");
  EXPECT_EQ(expanded_path("~/a"), home / "a");
  EXPECT_EQ(cache_folder("speeds"), home / ".cache/braid/speeds");
  ::setenv("HOME", "", 1);  // is a home
  EXPECT_EQ(expanded_path("~/a"), "/a");
  EXPECT_EQ(cache_folder("speeds"), "");
}

TEST(CacheFolder, IsInNoRelativeFolder) {
  const auto of = [](const std::map<std::string, std::string>& set) {
    const Variables variables(set);
    return cache_folder("speeds");
  };
  EXPECT_EQ(of({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/x"}}), "/x/braid/speeds");
  for (const char* const caches : {"", ".", "x", "~/x"})
    EXPECT_EQ(of({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", caches}}), "/home/u/.cache/braid/speeds");
  for (const char* const home : {"", ".", "u"}) EXPECT_EQ(of({{"HOME", home}}), "");
  EXPECT_EQ(of({{"HOME", "u"}, {"XDG_CACHE_HOME", "/x"}}), "/x/braid/speeds");
}

// Expected values are those of os.path.expandvars(os.path.expanduser(path)).
TEST(ExpandedPath, HasVariablesAsPythonHasThem) {
  const Variables variables({{"HOME", "/home/u"}, {"HF_HOME", "/h"}, {"XDG_CACHE_HOME", ""}});
  const std::map<std::string, std::string> expected = {{"~", "/home/u"},
                                                       {"~/a", "/home/u/a"},
                                                       {"a~/~", "a~/~"},
                                                       {"$HF_HOME/b", "/h/b"},
                                                       {"${HF_HOME}b", "/hb"},
                                                       {"~/$HF_HOME/${HOME}", "/home/u//h//home/u"},
                                                       {"a${XDG_CACHE_HOME}b", "ab"},
                                                       {"$HF_HUB_CACHE/a", "$HF_HUB_CACHE/a"},
                                                       {"a${HF_HUB_CACHE}", "a${HF_HUB_CACHE}"},
                                                       {"$HF_HOMES-$", "$HF_HOMES-$"},
                                                       {"$$HF_HOME", "$/h"},
                                                       {"${HF_HOME/$HOME", "${HF_HOME//home/u"},
                                                       {"${}$-$HF_HOME-", "${}$-/h-"}};
  for (const auto& [path, wanted] : expected) EXPECT_EQ(expanded_path(path).string(), wanted);
  ::setenv("HF_HUB_CACHE", "$HF_HOME/$HOME", 1);
  EXPECT_EQ(hub_cache(), "/h//home/u");
  ::setenv("HOME", "$HF_HOME", 1);
  ::setenv("HF_HUB_CACHE", "${HOME}", 1);
  EXPECT_EQ(hub_cache(), "$HF_HOME") << "values are not expanded again";
}

TEST(ModelName, IsTheLastComponent) {
  EXPECT_EQ(model_name("models/demo"), "demo");
  EXPECT_EQ(model_name("models/demo/"), "demo");
  EXPECT_EQ(model_name("models/demo/."), "demo");
  EXPECT_EQ(model_name("a/flux1-dev.safetensors"), "flux1-dev.safetensors");
}

TEST(ModelName, OfASnapshotIsTheModels) {
  const std::string hub = "/hub/models--black-forest-labs--FLUX.1-dev";
  for (const auto& path :
       {hub, hub + "/", hub + "/snapshots", hub + "/snapshots/" + kFirst,
        hub + "/snapshots/" + kFirst + "/", std::string("black-forest-labs/FLUX.1-dev")})
    EXPECT_EQ(model_name(path), "FLUX.1-dev") << path;
  EXPECT_EQ(model_name(hub + "/snapshots/" + kFirst + "/a.gguf"), "a.gguf");
  EXPECT_EQ(model_name("/hub/models--gpt2/snapshots/" + kFirst), "gpt2");
  EXPECT_EQ(model_name("/a/models--x--y/notes"), "notes") << "not a cache";
  EXPECT_EQ(hub_repository(hub + "/snapshots/" + kFirst + "/a.gguf"),
            "black-forest-labs/FLUX.1-dev");
  EXPECT_EQ(hub_repository("/a/b"), "");
}

}  // namespace braid::hub_cache_test
