-- SPDX-License-Identifier: Apache-2.0
-- Schema 18: the GPU time of the runs before the present one, a share counting as its part; NULL
-- is 0. Of jobs from before it is what they asked for last times the time these ran.
ALTER TABLE jobs ADD COLUMN served_gpu_ms INTEGER;
UPDATE jobs SET served_gpu_ms =
  served_ms * (gpus * coalesce(share_parts, 10000) * coalesce(nodes, 1)) / 10000
WHERE served_ms > 0;
