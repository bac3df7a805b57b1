// No number in a config.json can crash a program or make it ask for all memory: every one that is
// read has a range, and is named if it is outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "message_of.h"
#include "models/causal_lm/config.h"
#include "models/clip/model.h"
#include "models/flux/config.h"
#include "models/flux/controlnet.h"
#include "models/flux/redux.h"
#include "models/flux2/config.h"
#include "models/flux3/config.h"
#include "models/joy/config.h"
#include "models/krea2/config.h"
#include "models/qwen21/config.h"
#include "models/qwen25_vl/config.h"
#include "models/qwen3_vl/config.h"
#include "models/qwen_image/controlnet.h"
#include "models/siglip/model.h"
#include "models/t5/model.h"
#include "models/vae/config.h"
#include "models/zimage/config.h"

namespace braid::config_ranges_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Reader {
  const char* folder;
  void (*read)(const JsonObject&);
};
std::ostream& operator<<(std::ostream& out, const Reader& reader) { return out << reader.folder; }

template <auto read>
void read_and_drop(const JsonObject& json) {
  (void)read(json);
}

const Reader kReaders[] = {
    {"models/published/FLUX.1-dev/transformer", &read_and_drop<&read_flux_config>},
    {"models/published/FLUX.2-klein-4B/transformer", &read_and_drop<&read_flux2_config>},
    {"models/published/Z-Image/transformer", &read_and_drop<&read_zimage_config>},
    {"tests/data/parity/joy/model/transformer", &read_and_drop<&read_joy_config>},
    {"tests/data/parity/denoisers/flux3", &read_and_drop<&read_flux3_config>},
    {"tests/data/parity/krea2/model/transformer", &read_and_drop<&read_krea2_config>},
    {"tests/data/parity/denoisers/qwen21", &read_and_drop<&read_qwen21_config>},
    {"tests/data/parity/denoisers/qwen-image", &read_and_drop<&read_qwen_image_config>},
    {"models/published/FLUX.1-dev/text_encoder", &read_and_drop<&read_clip_config>},
    {"models/published/FLUX.1-dev/text_encoder_2", &read_and_drop<&read_t5_config>},
    {"models/published/FLUX.2-klein-4B/text_encoder", &read_and_drop<&read_causal_lm_config>},
    {"tests/data/parity/joy/model/text_encoder", &read_and_drop<&read_qwen3_vl_config>},
    {"tests/data/parity/qwen-image-edit/model/text_encoder",
     &read_and_drop<&read_qwen25_vl_config>},
    {"models/published/FLUX.1-dev/vae", &read_and_drop<&read_vae_config>},
    {"models/published/FLUX.2-klein-4B/vae", &read_and_drop<&read_vae_config>},
    {"tests/data/parity/joy/model/vae", &read_and_drop<&read_vae_config>},
    {"tests/data/parity/controlnets/model/controlnet_1",
     &read_and_drop<&read_flux_controlnet_config>},
    {"tests/data/parity/qwen-image-control/model/controlnet_1",
     &read_and_drop<&read_qwen_image_controlnet_config>},
    {"tests/data/parity/redux/model/redux/image_encoder", &read_and_drop<&read_siglip_config>},
    {"tests/data/parity/redux/model/redux/image_embedder", &read_and_drop<&read_redux_config>}};

// Read as any number.
const std::set<std::string> kNumbers = {"rope_theta", "theta", "t_scale", "mlp_ratio",
                                        "mlp_width_ratio"};

// "axes_dims_rope" of "/axes_dims_rope/0".
std::string key_of(const std::string& pointer) {
  auto path = Json::json_pointer(pointer);
  while (std::isdigit(static_cast<unsigned char>(path.back().front()))) path.pop_back();
  return path.back();
}

class ConfigRanges : public testing::TestWithParam<Reader> {
 protected:
  std::string refusal(const std::string& pointer, const Json& value) const {
    auto changed = json_;
    changed[Json::json_pointer(pointer)] = value;
    return message_of([&] { GetParam().read(JsonObject(changed, "config.json")); });
  }

  const Json json_ = read_json(fs::path(BRAID_SOURCE_DIR) / GetParam().folder / "config.json");
};

TEST_P(ConfigRanges, HoldForEveryIntegerThatIsRead) {
  EXPECT_EQ(message_of([&] { GetParam().read(JsonObject(json_, "config.json")); }), "");
  int checked = 0;
  const auto flat = json_.flatten();  // by path: "/axes_dims_rope/0"
  for (const auto& [pointer, value] : flat.items()) {
    const auto key = key_of(pointer);
    const bool is_read =
        value.is_number_integer() && !kNumbers.contains(key) && refusal(pointer, "many") != "";
    if (!is_read) continue;
    ++checked;
    for (const std::int64_t odd : {std::int64_t(-1), std::int64_t(1'000'000'000'000)})
      EXPECT_THAT(refusal(pointer, odd), HasSubstr("'" + key + "'")) << odd;
    EXPECT_THAT(refusal(pointer, 1.5), HasSubstr("'" + key + "'"));
    (void)refusal(pointer, 0);  // may be refused or not
  }
  EXPECT_GE(checked, 2);
}

INSTANTIATE_TEST_SUITE_P(Readers, ConfigRanges, testing::ValuesIn(kReaders));

}  // namespace braid::config_ranges_test
