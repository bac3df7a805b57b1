// What the environment says of the hub, as huggingface_hub reads it.
#include "net/hub/hub_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::net::hub_access_test {

class HubEnvironment : public testing::Test {
 protected:
  HubEnvironment() { set({}); }
  ~HubEnvironment() override { set({}); }
  void set(const std::map<std::string, std::string>& variables) const {
    for (const char* const name :
         {"HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
          "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_DISABLE_IMPLICIT_TOKEN",
          "BRAID_TEST_FOLDER"})
      ::unsetenv(name);
    ::setenv("HF_HOME", folder_.path().c_str(), 1);
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }

  const TemporaryFolder folder_;
};

TEST_F(HubEnvironment, IsThePublicHubWithoutAToken) {
  const auto access = hub_access();
  EXPECT_EQ(access.endpoint, "https://huggingface.co");
  EXPECT_EQ(access.token, "");
  EXPECT_EQ(access.offline_by, "");
  EXPECT_EQ(access.cache, folder_ / "hub");
}

TEST_F(HubEnvironment, NamesAnotherHubAndCache) {
  set({{"HF_ENDPOINT", "https://mirror.example.org/hf//"}, {"HF_HUB_CACHE", "/models"}});
  EXPECT_EQ(hub_access().endpoint, "https://mirror.example.org/hf");
  EXPECT_EQ(hub_access().cache, "/models");
}

TEST_F(HubEnvironment, HasTokensInThisOrder) {
  write_file(folder_ / "token", " of-home\n");
  EXPECT_EQ(hub_access().token, "of-home");
  EXPECT_EQ(hub_access().token_source, (folder_ / "token").string());
  write_file(folder_ / "other", "of-path");
  set({{"HF_TOKEN_PATH", (folder_ / "other").string()}});
  EXPECT_EQ(hub_access().token, "of-path");
  set({{"BRAID_TEST_FOLDER", folder_.path()}, {"HF_TOKEN_PATH", "${BRAID_TEST_FOLDER}/other"}});
  EXPECT_EQ(hub_access().token, "of-path");
  set({{"HUGGING_FACE_HUB_TOKEN", "older"}});
  EXPECT_EQ(hub_access().token, "older");
  set({{"HUGGING_FACE_HUB_TOKEN", "older"}, {"HF_TOKEN", "\tmine\n"}});
  EXPECT_EQ(hub_access().token, "mine");
  EXPECT_EQ(hub_access().token_source, "HF_TOKEN");
  set({{"HF_TOKEN", "mine"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}});
  EXPECT_EQ(hub_access().token, "");
}

TEST_F(HubEnvironment, RefusesTokensThatWouldBeginAnotherHeader) {
  set({{"HF_TOKEN", "a\r\nx-other: b"}});
  const auto refusal = message_of([] { hub_access(); });
  EXPECT_EQ(refusal, "the token in HF_TOKEN has spaces or other characters that no token has");
}

TEST_F(HubEnvironment, MayForbidTheNetwork) {
  for (const char* const name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
    for (const char* const on : {"1", "ON", "yes", "True"}) {
      set({{name, on}});
      EXPECT_EQ(hub_access().offline_by, name) << on;
    }
    set({{name, "0"}});
    EXPECT_EQ(hub_access().offline_by, "");
  }
}

}  // namespace braid::net::hub_access_test
