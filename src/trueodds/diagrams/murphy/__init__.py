"""Murphy diagram of elementary scores, and the plane of miscalibration and discrimination."""
