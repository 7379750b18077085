-- SPDX-License-Identifier: MIT
-- Refuses jobs above their ceiling when they are submitted: for job_submit.lua of slurmctld (JobSubmitPlugins=lua).
--
--   dofile("/etc/slurm/gpreempt.lua")
--   function slurm_job_submit(job_desc, part_list, submit_uid)
--       return gpreempt_job_submit(job_desc, part_list)
--   end
--
-- It reads /etc/slurm/gpreempt.conf, as the plugin on the nodes does, which has the last word.

local NAMES = { idle = 0, low = 20, normal = 50, high = 80, realtime = 99 }

local function priority(text)
	local number = NAMES[text] or tonumber(text)
	if number and number >= 0 and number <= 99 and number == math.floor(number) then
		return number
	end
	return nil
end

-- A file that makes no sense lets nobody above the default.
local function ceilings(path)
	local found = { default = 50 }
	local file = io.open(path, "r")
	local section = ""
	if not file then
		return found
	end
	for line in file:lines() do
		local name, value = line:match("^%s*([^#;%s=][^=]-)%s*=%s*(.-)%s*$")
		section = line:match("^%s*%[(.-)%]%s*$") or section
		if name and section == "ceiling" then
			found[name] = priority(value)
			if not found[name] then
				slurm.log_error("gpreempt: %s: '%s' is no priority", path, value)
				file:close()
				return { default = 50 }
			end
		end
	end
	file:close()
	return found
end

local function asked_for(job_desc)
	for _, entry in pairs(job_desc.spank_job_env or {}) do
		local value = tostring(entry):match("GPREEMPT_PRIORITY=(%d+)$")
		if value then
			return tonumber(value)
		end
	end
	return nil
end

local function default_partition(part_list)
	for name, partition in pairs(part_list or {}) do
		if partition.flag_default == 1 then
			return name
		end
	end
	return nil
end

function gpreempt_job_submit(job_desc, part_list, path)
	local asked = asked_for(job_desc)
	if not asked then
		return slurm.SUCCESS
	end
	local lines = ceilings(path or "/etc/slurm/gpreempt.conf")
	local qos = job_desc.qos or job_desc.default_qos
	local ceiling = qos and lines["qos." .. qos]
	if not ceiling then
		-- Of several partitions the lowest: the job may start in any of them.
		for name in (job_desc.partition or default_partition(part_list) or ""):gmatch("[^,]+") do
			local line = lines["partition." .. name] or lines.default
			ceiling = math.min(ceiling or line, line)
		end
	end
	ceiling = ceiling or lines.default
	if asked > ceiling then
		slurm.log_user("gpreempt: --gpu-priority=%d is above the ceiling %d of QOS '%s' and partition '%s'; ask for at most %d or use another QOS",
			asked, ceiling, qos or "", job_desc.partition or "", ceiling)
		return slurm.ERROR
	end
	return slurm.SUCCESS
end
