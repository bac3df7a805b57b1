// The families that Braid knows, one line each. It defines nothing else, so that a program linking
// this library with its own known_families(), as tests do, gets only that.
#include "pipeline/families/family.h"
#include "pipeline/families/flux/flux.h"
#include "pipeline/families/flux2/flux2.h"
#include "pipeline/families/flux3/flux3.h"
#include "pipeline/families/joy/joy.h"
#include "pipeline/families/krea2/krea2.h"
#include "pipeline/families/qwen21/qwen21.h"
#include "pipeline/families/qwen_image/qwen_image.h"
#include "pipeline/families/zimage/zimage.h"

namespace braid {

const std::vector<FamilyEntry>& known_families() {
  static const std::vector<FamilyEntry> kFamilies = {
      flux_family(FluxKind::kPlain),
      flux_family(FluxKind::kKontext),
      flux_family(FluxKind::kFill),
      flux_family(FluxKind::kControl),
      flux2_klein_family(),
      flux2_kept_klein_family(),
      flux2_dev_family(),
      flux3_family(),
      zimage_family(),
      joy_family(JoyKind::kEdit),
      joy_family(JoyKind::kPlus),
      krea2_family(),
      qwen21_family(),
      qwen_image_family(QwenImageKind::kPlain),
      qwen_image_family(QwenImageKind::kEdit),
      qwen_image_family(QwenImageKind::kEditPlus),
      qwen_image_family(QwenImageKind::kLayered),
  };
  return kFamilies;
}

}  // namespace braid
